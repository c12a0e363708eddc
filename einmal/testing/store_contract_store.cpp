#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "einmal/core/limits.hpp"
#include "einmal/testing/store_contract.hpp"

/// What the port promises beside the events table: bytes, generations, profiles, audit, lists,
/// bounds, batches, threads, reopening, the clock.
namespace einmal::testing {
namespace {

using namespace std::chrono_literals;

template <class T>
T expect_answer(Store& store, Request request) {
  auto answered = ask(store, std::move(request));
  if (!answered) {
    ADD_FAILURE() << "error: " << answered.error().message;
    return {};
  }
  if (auto* answer = std::get_if<T>(&*answered)) return std::move(*answer);
  ADD_FAILURE() << "another kind of answer: " << answered->index();
  return {};
}

std::optional<StoredRecord> read(Store& store, const Scope& scope, bool with_body = true) {
  return expect_answer<answer::Found>(store, request::ReadScope{scope, with_body}).record;
}

Scope scope_of(const std::string& name_space, const std::string& caller,
               const std::string& operation, const std::string& key) {
  return *Scope::make(name_space, caller, operation, key);
}

event::Claim claim_by(OwnerToken owner, Random& random) {
  event::Claim claim;
  claim.fingerprint.profile = StoreScript::profile(1).id;
  claim.owner = owner;
  claim.operation_id = OperationId::draw(random);
  claim.policies.lease = 30s;
  claim.policies.retention = 1h;
  return claim;
}

request::Transition transition(const Scope& scope, Event event) {
  return {scope, std::move(event), nullptr, {}};
}

/// Claims as a new owner; the record if it executes.
std::optional<Record> execute(Store& store, const Scope& scope, Random& random) {
  auto decided =
      ask_transition(store, transition(scope, claim_by(OwnerToken::draw(random), random)));
  if (!decided) return std::nullopt;
  auto* execute = std::get_if<decision::Execute>(&*decided);
  return execute ? std::optional(std::move(execute->record)) : std::nullopt;
}

Decision settle(Store& store, const Scope& scope, const Record& claimed, StoredResult result) {
  event::Settle settle{event::Final::completed, claimed.generation, claimed.owner,
                       std::move(result), false};
  auto decided = ask_transition(store, transition(scope, std::move(settle)));
  if (decided) return std::move(*decided);
  ADD_FAILURE() << decided.error().message;
  return decision::Unchanged{};
}

StoredResult created(Bytes body = "{}") {
  StoredResult result;
  result.status = 201;
  result.body = std::move(body);
  return result;
}

Bytes every_byte(std::size_t size) {
  Bytes bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 % 256);
  return bytes;
}

// --- bytes

TEST_P(StoreContract, KeepsAResultByteForByte) {
  const Scope scope = StoreScript::scope("k");
  const auto claimed = execute(store(), scope, random());
  ASSERT_TRUE(claimed);
  StoredResult result = created(every_byte(100'000));
  result.headers = std::string("Location: /orders/1\r\nX-Raw: \x80\xff\r\n");
  result.body_kept = BodyKept::kept;
  result.effect = Effect::unknown;
  result.representation_version = 3;
  result.resource_id = std::string("order\0/1", 8);
  settle(store(), scope, *claimed, result);
  const auto decided =
      ask_transition(store(), transition(scope, claim_by(OwnerToken::draw(random()), random())));
  ASSERT_TRUE(decided && std::holds_alternative<decision::Replay>(*decided));
  EXPECT_EQ(std::get<decision::Replay>(*decided).record.result, result);
  EXPECT_EQ(read(store(), scope)->record.result, result);
}

TEST_P(StoreContract, KeepsWhyABodyWasNotKept) {
  for (const BodyKept why : {BodyKept::too_large, BodyKept::streaming, BodyKept::no_room,
                             BodyKept::not_supplied, BodyKept::by_choice}) {
    const Scope scope = StoreScript::scope("k" + std::to_string(static_cast<int>(why)));
    StoredResult result = created("");
    result.body_kept = why;
    settle(store(), scope, *execute(store(), scope, random()), result);
    EXPECT_EQ(read(store(), scope)->record.result, result);
  }
}

TEST_P(StoreContract, ReadsWithoutBodyWhereNoneIsAskedFor) {
  const Scope scope = StoreScript::scope("k");
  settle(store(), scope, *execute(store(), scope, random()), created("a body"));
  const auto found = read(store(), scope, false);
  ASSERT_TRUE(found && found->record.result);
  EXPECT_EQ(found->record.result->status, 201);
  EXPECT_EQ(found->record.result->body, "");
  EXPECT_EQ(found->record.result->headers, "");
}

TEST_P(StoreContract, TakesTheLongestScopeAndTellsScopesApart) {
  const std::string longest(max_scope_part_bytes, 'n');
  const std::vector<Scope> scopes{
      scope_of("app", "ab", "c", "k"),
      scope_of("app", "a", "bc", "k"),
      scope_of("app2", "ab", "c", "k"),
      scope_of("app", "ab", "c", "K"),
      scope_of("app", std::string("a\0b", 3), "c", "k"),
      scope_of("app", "caf\xc3\xa9", "\xff\xfe", "k"),
      scope_of(longest, longest, longest, std::string(max_key_bytes, '~'))};
  for (const Scope& scope : scopes) EXPECT_TRUE(execute(store(), scope, random()));
  for (const Scope& scope : scopes) EXPECT_EQ(read(store(), scope)->scope, scope);
}

TEST_P(StoreContract, RefusesWhatIsBeyondTheLimitsAndWritesNothing) {
  event::Claim claim = claim_by(OwnerToken::draw(random()), random());
  claim.policies.lease = -1s;
  const auto decided = ask_transition(store(), transition(StoreScript::scope("k"), claim));
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, ErrorCode::invalid);
  EXPECT_EQ(condition_of("k"), "absent");
}

TEST_P(StoreContract, KeepsThePoliciesOfTheClaimThatMadeTheRecord) {
  event::Claim claim = claim_by(OwnerToken::draw(random()), random());
  claim.policies = {7s, OnLeaseExpiry::takeover, 3h, AfterExpiry::refuse, 5h};
  ASSERT_TRUE(ask_transition(store(), transition(StoreScript::scope("k"), claim)));
  play("claim k b retention=1m");
  EXPECT_EQ(read(store(), StoreScript::scope("k"))->record.policies, claim.policies);
}

// --- identity of an operation

TEST_P(StoreContract, NamesAnOperationByOneIdAcrossTakeoversAndByANewOneWhenClaimedAnew) {
  const Scope scope = StoreScript::scope("k");
  play("claim k a takeover");
  const OperationId first = read(store(), scope)->record.operation_id;
  play("wait 30s; claim k b takeover");
  EXPECT_EQ(read(store(), scope)->record.operation_id, first);
  play("complete k b 201; wait 1h; claim k c");
  const OperationId second = read(store(), scope)->record.operation_id;
  EXPECT_NE(second, first);
  EXPECT_FALSE(expect_answer<answer::Found>(store(), request::ReadOperation{first}).record);
  const auto found = expect_answer<answer::Found>(store(), request::ReadOperation{second}).record;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->scope, scope);
  EXPECT_EQ(found->condition, Condition::processing);
}

// --- generations

TEST_P(StoreContract, NeverRepeatsAGenerationOfAKeyWhateverHappensBetween) {
  const Scope scope = StoreScript::scope("k");
  std::uint64_t last = 0;
  int owner = 0;
  for (const std::string between :
       {"release k O", "mark k O; release k O", "mark k O; resolve k freed",
        "complete k O 201; wait 1h", "complete k O 201; wait 1h; sweep",
        "complete k O 201; forget k", "mark k O; resolve k freed; wait 1h; sweep",
        "jump -9000h; release k O", "complete k O 201; wait 1h; sweep; jump -9000h",
        "advance-generations; release k O", "release k O; reopen",
        "complete k O 201; wait 1h; sweep; reopen", "wait 30s"}) {
    const std::string name = "o" + std::to_string(++owner);
    SCOPED_TRACE(between);
    ASSERT_TRUE(play("claim k " + name + " takeover").starts_with("execute"));
    const std::uint64_t generation = number(read(store(), scope)->record.generation);
    EXPECT_GT(generation, last);
    last = generation;
    std::string script = between;
    for (std::size_t at = script.find('O'); at != script.npos; at = script.find('O', at))
      script.replace(at, 1, name);
    const bool again = script.ends_with("; reopen");
    if (again) script.resize(script.size() - 8);
    play(script);
    if (again && GetParam().survives_reopen) reopen();
  }
  ASSERT_TRUE(play("claim k last takeover").starts_with("execute takeover"));
  EXPECT_GT(number(read(store(), scope)->record.generation), last);
}

TEST_P(StoreContract, MovesGenerationsOnByFourBillionAfterARestore) {
  const Scope scope = StoreScript::scope("k");
  const auto before = execute(store(), scope, random());
  expect_answer<answer::Done>(store(), request::AdvanceGenerations{{"operator", "restored"}});
  const auto after = execute(store(), StoreScript::scope("other"), random());
  EXPECT_GT(number(after->generation), number(before->generation) + (std::uint64_t{1} << 32));
  EXPECT_GE(number(expect_answer<answer::Stats>(store(), request::Stats{}).last_generation),
            number(after->generation));
  const auto rows = expect_answer<answer::AuditRows>(store(), request::ReadAudit{}).rows;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].audit.event, AuditEvent::generations_advanced);
  EXPECT_EQ(rows[0].scope, std::nullopt);
  EXPECT_EQ(rows[0].actor, (Actor{"operator", "restored"}));
}

// --- a claim in doubt

TEST_P(StoreContract, GivesAClaimantWhoseAnswerWasLostItsOwnClaimAgain) {
  const Scope scope = StoreScript::scope("k");
  const OwnerToken owner = OwnerToken::draw(random());
  const auto first = ask_transition(store(), transition(scope, claim_by(owner, random())));
  clock().advance(20s);
  const auto again = ask_transition(store(), transition(scope, claim_by(owner, random())));
  ASSERT_TRUE(first && again);
  const auto& repeated = std::get<decision::Execute>(*again);
  EXPECT_TRUE(repeated.repeated);
  EXPECT_EQ(repeated.record.generation, std::get<decision::Execute>(*first).record.generation);
  EXPECT_EQ(repeated.record.operation_id, std::get<decision::Execute>(*first).record.operation_id);
  EXPECT_EQ(read(store(), scope)->lease_left, Duration(30s));
}

// --- profiles

TEST_P(StoreContract, KeepsTheProfilesThatRecordsWereClaimedUnder) {
  play("claim k a profile=1; claim k2 a profile=2");
  for (const int known : {1, 2}) {
    const Profile profile = StoreScript::profile(known);
    EXPECT_EQ(
        expect_answer<answer::FoundProfile>(store(), request::ReadProfile{profile.id}).definition,
        profile.definition);
  }
  const Digest unknown = StoreScript::profile(3).id;
  EXPECT_EQ(expect_answer<answer::FoundProfile>(store(), request::ReadProfile{unknown}).definition,
            std::nullopt);
  const auto decided = ask_transition(
      store(),
      transition(StoreScript::scope("k2"), claim_by(OwnerToken::draw(random()), random())));
  ASSERT_TRUE(decided && std::holds_alternative<decision::OtherProfile>(*decided));
  EXPECT_EQ(std::get<decision::OtherProfile>(*decided).profile, StoreScript::profile(2).id);
}

// --- audit

std::vector<AuditRow> audit_of(Store& store, const std::string& key) {
  request::ReadAudit read;
  read.scope = StoreScript::scope(key);
  return expect_answer<answer::AuditRows>(store, read).rows;
}

TEST_P(StoreContract, LeavesNoAuditOnTheOrdinaryRoad) {
  play("claim k a; renew k a; claim k b; complete k a 201; claim k b");
  play("claim k2 a; release k2 a; claim k2 a; complete k2 a 201; wait 1h; sweep");
  EXPECT_TRUE(audit_of(store(), "k").empty());
  EXPECT_TRUE(audit_of(store(), "k2").empty());
}

TEST_P(StoreContract, TellsAKeysHistoryInOrderWithActorEvidenceBeforeAndAfter) {
  play("claim k a takeover; wait 30s; claim k b takeover; wait 1s; mark k b seen=502");
  play("resolve k freed; claim k c body=2");
  const auto rows = audit_of(store(), "k");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].audit.event, AuditEvent::taken_over);
  EXPECT_EQ(rows[1].audit.event, AuditEvent::became_uncertain);
  EXPECT_EQ(rows[1].at - rows[0].at, Duration(1s));
  EXPECT_EQ(rows[1].actor, Actor{});
  EXPECT_EQ(rows[1].audit.generation, rows[0].audit.generation);
  EXPECT_EQ(rows[2].audit.event, AuditEvent::resolved);
  EXPECT_EQ(rows[2].audit.before, State::uncertain);
  EXPECT_EQ(rows[2].audit.after, State::freed);
  EXPECT_EQ(rows[2].actor, (Actor{"operator", "seen in the ledger"}));
  EXPECT_EQ(rows[2].operation_id, rows[0].operation_id);
  request::ReadAudit by_id;
  by_id.id = rows[0].operation_id;
  EXPECT_EQ(expect_answer<answer::AuditRows>(store(), by_id).rows, rows);
}

TEST_P(StoreContract, KeepsALateResultWhole) {
  const Scope scope = StoreScript::scope("k");
  const auto claimed = execute(store(), scope, random());
  play("resolve k failed force");
  StoredResult late = created(every_byte(3000));
  late.headers = "Location: /orders/9\r\n";
  late.resource_id = "order-9";
  const Decision decided = settle(store(), scope, *claimed, late);
  ASSERT_TRUE(std::holds_alternative<decision::Lost>(decided));
  EXPECT_TRUE(std::get<decision::Lost>(decided).contradicts);
  const auto rows = audit_of(store(), "k");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].audit.event, AuditEvent::late_result);
  EXPECT_EQ(rows[1].audit.generation, claimed->generation);
  EXPECT_EQ(rows[1].audit.late_outcome, event::Final::completed);
  EXPECT_EQ(rows[1].audit.late_result, late);
  EXPECT_TRUE(rows[1].audit.contradicts);
}

TEST_P(StoreContract, KeepsTheAuditWhenTheRecordIsGoneAndDropsItAfterItsOwnRetention) {
  play("claim k a; mark k a; resolve k completed; forget k");
  EXPECT_EQ(condition_of("k"), "absent");
  ASSERT_EQ(audit_of(store(), "k").size(), 3u);
  EXPECT_EQ(audit_of(store(), "k").back().audit.event, AuditEvent::forgotten);
  clock().advance(GetParam().audit_retention - 1us);
  play("sweep");
  EXPECT_EQ(audit_of(store(), "k").size(), 3u);
  clock().advance(1us);
  play("sweep");
  EXPECT_TRUE(audit_of(store(), "k").empty());
}

TEST_P(StoreContract, ReadsTheNewestAuditRowsUpToTheLimit) {
  for (int i = 0; i < 5; ++i) play("claim k a; mark k a; resolve k freed; wait 1s");
  request::ReadAudit newest;
  newest.limit = 3;
  const auto rows = expect_answer<answer::AuditRows>(store(), newest).rows;
  const auto all = audit_of(store(), "k");
  ASSERT_EQ(all.size(), 10u);
  EXPECT_EQ(rows, std::vector<AuditRow>(all.end() - 3, all.end()));
}

// --- lists and counts

TEST_P(StoreContract, ListsEveryRecordExactlyOncePageByPage) {
  std::set<Scope> expected;
  for (int i = 0; i < 23; ++i) {
    const Scope scope =
        scope_of("app", "caller" + std::to_string(i % 3), "op", "k" + std::to_string(i));
    ASSERT_TRUE(execute(store(), scope, random()));
    expected.insert(scope);
  }
  std::set<Scope> listed;
  request::List list;
  list.limit = 5;
  int pages = 0;
  do {
    const auto page = expect_answer<answer::Page>(store(), list);
    EXPECT_LE(page.records.size(), 5u);
    for (const StoredRecord& stored : page.records)
      EXPECT_TRUE(listed.insert(stored.scope).second) << "listed twice";
    list.after = page.next;
    ASSERT_LE(++pages, 6) << "the list does not end";
  } while (!list.after.empty());
  EXPECT_EQ(listed, expected);
}

std::set<std::string> keys_of(Store& store, const request::List& list) {
  std::set<std::string> keys;
  for (const StoredRecord& stored : expect_answer<answer::Page>(store, list).records)
    keys.insert(stored.scope.key());
  return keys;
}

TEST_P(StoreContract, ListsByConditionAsTheClockSeesItSweptOrNot) {
  play("claim done a; complete done a 201; claim no a; fail no a 402");
  play("claim gone a refuse=9h; complete gone a 201; claim over a; complete over a 201");
  play("wait 30m; claim done b; claim fresh a; complete fresh a 201; claim open a");
  play("claim unknown a; mark unknown a; claim free a; mark free a; resolve free freed; wait 30m");
  request::List list;
  const auto with = [&](std::vector<Condition> conditions) {
    list.conditions = std::move(conditions);
    return keys_of(store(), list);
  };
  using Keys = std::set<std::string>;
  EXPECT_EQ(with({Condition::processing}), Keys{"open"});
  EXPECT_EQ(with({Condition::uncertain}), Keys{"unknown"});
  EXPECT_EQ(with({Condition::completed, Condition::failed}), Keys{"fresh"});
  EXPECT_EQ(with({Condition::tombstone}), Keys{"gone"});
  EXPECT_EQ(with({Condition::absent}), (Keys{"done", "no", "over", "free"}));
  EXPECT_EQ(with({}).size(), 8u);
}

TEST_P(StoreContract, ListsByScopeAndAgeAndWithoutBodies) {
  const Scope mine = scope_of("app", "alice", "op", "k1");
  settle(store(), mine, *execute(store(), mine, random()), created("a body"));
  clock().advance(10s);
  ASSERT_TRUE(execute(store(), scope_of("app", "bob", "op", "k2"), random()));
  ASSERT_TRUE(execute(store(), scope_of("gateway", "alice", "op", "k3"), random()));
  ASSERT_TRUE(execute(store(), scope_of("app", "alice", "other", "k4"), random()));
  using Keys = std::set<std::string>;
  request::List list;
  list.caller = "alice";
  EXPECT_EQ(keys_of(store(), list), (Keys{"k1", "k3", "k4"}));
  list.name_space = "app";
  EXPECT_EQ(keys_of(store(), list), (Keys{"k1", "k4"}));
  list.operation = "op";
  EXPECT_EQ(keys_of(store(), list), Keys{"k1"});
  request::List old;
  old.min_age = 10s;
  const auto page = expect_answer<answer::Page>(store(), old);
  ASSERT_EQ(page.records.size(), 1u);
  EXPECT_EQ(page.records[0].age, Duration(10s));
  EXPECT_EQ(page.records[0].record.result->status, 201);
  EXPECT_EQ(page.records[0].record.result->body, "");
}

TEST_P(StoreContract, CountsByConditionWithAgesAndSweepBacklog) {
  play("claim old a lease=none; wait 10s; claim unknown a; mark unknown a");
  play("claim done a; complete done a 201; claim no a; fail no a 402");
  play("claim free a; mark free a; resolve free freed; claim gone a refuse=9h retention=1m");
  play("complete gone a 201; claim over a retention=2m; complete over a 201; wait 5m");
  const auto stats = expect_answer<answer::Stats>(store(), request::Stats{});
  EXPECT_EQ(stats.processing.records, 1u);
  EXPECT_EQ(stats.uncertain.records, 1u);
  EXPECT_EQ(stats.completed.records, 1u);
  EXPECT_EQ(stats.failed.records, 1u);
  EXPECT_EQ(stats.freed.records, 1u);
  EXPECT_EQ(stats.tombstone.records, 1u);
  EXPECT_EQ(stats.expired.records, 1u);
  EXPECT_GT(stats.completed.bytes, 0u);
  EXPECT_EQ(stats.oldest_live, Duration(5min + 10s));
  EXPECT_EQ(stats.oldest_processing, Duration(5min + 10s));
  EXPECT_EQ(stats.oldest_uncertain, Duration(5min));
  EXPECT_EQ(stats.sweep_backlog, 2u);
  EXPECT_EQ(stats.sweep_lag, Duration(4min));
  EXPECT_FALSE(stats.expiry_paused);
  play("sweep");
  const auto swept = expect_answer<answer::Stats>(store(), request::Stats{});
  EXPECT_EQ(swept.tombstone.records, 1u);
  EXPECT_EQ(swept.expired.records, 0u);
  EXPECT_EQ(swept.sweep_backlog, 0u);
  EXPECT_EQ(swept.sweep_lag, std::nullopt);
}

TEST_P(StoreContract, CountsNothingInAnEmptyStore) {
  const auto stats = expect_answer<answer::Stats>(store(), request::Stats{});
  EXPECT_EQ(stats.processing.records + stats.completed.records + stats.expired.records, 0u);
  EXPECT_EQ(stats.oldest_live, std::nullopt);
  EXPECT_EQ(stats.last_generation, Generation{0});
  EXPECT_TRUE(expect_answer<answer::Page>(store(), request::List{}).records.empty());
}

TEST_P(StoreContract, NamesTheOperationsThatHaveLiveRecords) {
  for (const std::string operation : {"b", "a", "c"})
    execute(store(), scope_of("gateway", "alice", operation, "k"), random());
  execute(store(), scope_of("app", "alice", "elsewhere", "k"), random());
  const Scope over = scope_of("gateway", "alice", "over", "k");
  settle(store(), over, *execute(store(), over, random()), created());
  clock().advance(1h);
  EXPECT_EQ(expect_answer<answer::Names>(store(), request::LiveOperations{"gateway"}).names,
            (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(
      expect_answer<answer::Names>(store(), request::LiveOperations{"nobody"}).names.empty());
}

TEST_P(StoreContract, CountsACallersLiveAndUncertainRecords) {
  play("claim k1 a; claim k2 a; mark k2 a; claim k3 a; complete k3 a 201");
  play("claim k4 a; complete k4 a 201; claim k5 a refuse=9h; complete k5 a 201; wait 1h");
  play("claim k3 b; claim k6 a; mark k6 a; resolve k6 freed");
  execute(store(), scope_of("app", "bob", "create-order", "k"), random());
  execute(store(), scope_of("gateway", "alice", "create-order", "k"), random());
  const auto count =
      expect_answer<answer::CallerCount>(store(), request::CountCaller{"app", "alice"});
  EXPECT_EQ(count.live, 4u);  // k1, k2, k3 claimed anew, k5 as a tombstone
  EXPECT_EQ(count.uncertain, 1u);
}

// --- bounded batches

TEST_P(StoreContract, SweepsInBoundedBatchesUntilNothingIsLeft) {
  for (int i = 0; i < 25; ++i) {
    const std::string key = "k" + std::to_string(i);
    play("claim " + key + " a; complete " + key + " a 201");
  }
  play("claim open a lease=none; claim gone a refuse=9h; complete gone a 201; wait 1h");
  std::size_t removed = 0, stripped = 0;
  for (bool more = true; more;) {
    const auto moved = expect_answer<answer::Moved>(store(), request::Sweep{10});
    EXPECT_LE(moved.changed + moved.stripped, 10u);
    more = moved.more;
    removed += moved.changed;
    stripped += moved.stripped;
    ASSERT_LE(removed, 25u);
  }
  EXPECT_EQ(removed, 25u);
  EXPECT_EQ(stripped, 1u);
  EXPECT_EQ(condition_of("open"), "processing");
  EXPECT_EQ(condition_of("gone"), "tombstone");
  EXPECT_EQ(read(store(), StoreScript::scope("gone"))->record.result, std::nullopt);
  const auto again = expect_answer<answer::Moved>(store(), request::Sweep{10});
  EXPECT_EQ(again.changed + again.stripped, 0u);
}

TEST_P(StoreContract, TurnsOverdueRecordsUncertainInBoundedBatches) {
  for (int i = 0; i < 12; ++i) play("claim k" + std::to_string(i) + " a");
  play("claim kept a takeover; claim silent a lease=none; wait 30s");
  const auto first = expect_answer<answer::Moved>(store(), request::Overdue{5});
  EXPECT_EQ(first.changed, 5u);
  EXPECT_TRUE(first.more);
  std::size_t changed = first.changed;
  for (bool more = true; more;) {
    const auto moved = expect_answer<answer::Moved>(store(), request::Overdue{5});
    more = moved.more;
    changed += moved.changed;
    ASSERT_LE(changed, 12u);
  }
  EXPECT_EQ(changed, 12u);
  EXPECT_EQ(condition_of("kept"), "processing");
  EXPECT_EQ(condition_of("silent"), "processing");
}

// --- batches and threads

/// Collects the answers of commands that were submitted together.
class Together {
 public:
  class One final : public Command {
   public:
    One(Together& together, Request request) : Command(std::move(request)), together_(together) {}
    void completed(Result<Answer> answer) noexcept override {
      // The last of all: whoever waits destroys this as soon as it is counted.
      const std::lock_guard lock(together_.mutex_);
      answer_.emplace(std::move(answer));
      ++together_.answered_;
      together_.arrived_.notify_one();
    }
    const Result<Answer>& answer() const { return *answer_; }

   private:
    Together& together_;
    std::optional<Result<Answer>> answer_;
  };

  void add(Request request) {
    commands_.push_back(std::make_unique<One>(*this, std::move(request)));
  }
  void submit(Store& store) {
    for (const auto& command : commands_) store.submit(*command);
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return answered_ == commands_.size(); });
  }
  const Result<Answer>& answer(std::size_t at) const { return commands_[at]->answer(); }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::size_t answered_ = 0;
  std::vector<std::unique_ptr<One>> commands_;
};

TEST_P(StoreContract, LetsOneFailingCommandFailNoOther) {
  Together together;
  for (int i = 0; i < 40; ++i) {
    event::Claim claim = claim_by(OwnerToken::draw(random()), random());
    if (i % 10 == 3) claim.policies.retention = -1s;
    together.add(transition(StoreScript::scope("k" + std::to_string(i)), claim));
  }
  together.submit(store());
  for (std::size_t i = 0; i < 40; ++i) {
    const auto& answer = together.answer(i);
    EXPECT_EQ(answer.has_value(), i % 10 != 3);
    EXPECT_EQ(condition_of("k" + std::to_string(i)), i % 10 != 3 ? "processing" : "absent");
  }
}

TEST_P(StoreContract, DecidesCommandsOfOneKeyInOneBatchOneAfterAnother) {
  Together together;
  const Scope scope = StoreScript::scope("k");
  for (int i = 0; i < 20; ++i)
    together.add(transition(scope, claim_by(OwnerToken::draw(random()), random())));
  together.submit(store());
  int executed = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    const auto& decision = std::get<Decision>(*together.answer(i));
    if (std::holds_alternative<decision::Execute>(decision))
      ++executed;
    else
      EXPECT_TRUE(std::holds_alternative<decision::InProgress>(decision));
  }
  EXPECT_EQ(executed, 1);
}

/// How many of 16 threads that claim one key at once are told to execute.
int claim_from_many_threads(const std::vector<Store*>& stores, const Scope& scope, Random& random) {
  std::atomic<int> executed = 0, waiting = 16;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      if (execute(*stores[i % stores.size()], scope, random)) ++executed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return executed;
}

TEST_P(StoreContract, LetsOneOfSixteenThreadsExecuteAKeyThatIsNewReleasedFreedOrExpired) {
  const Scope scope = StoreScript::scope("k");
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(claim_from_many_threads({&store()}, scope, random()), 1);
    const Record record = read(store(), scope)->record;
    if (round % 2 == 0) {
      settle(store(), scope, record, created());
      clock().advance(1h);
    } else {
      ASSERT_TRUE(ask_transition(
          store(), transition(scope, event::Release{record.generation, record.owner})));
    }
  }
}

TEST_P(StoreContract, LetsOneProcessExecuteWhenSeveralHaveTheStoreOpen) {
  if (!GetParam().several_at_once) GTEST_SKIP() << "this store is opened by one process at a time";
  const auto other = home().open();
  for (int round = 0; round < 5; ++round) {
    const Scope scope = StoreScript::scope("k" + std::to_string(round));
    EXPECT_EQ(claim_from_many_threads({&store(), other.get()}, scope, random()), 1);
    const Record record = read(store(), scope)->record;
    EXPECT_EQ(read(*other, scope)->record, record);
    settle(*other, scope, record, created());
    EXPECT_EQ(read(store(), scope)->condition, Condition::completed);
  }
}

// --- reopening

TEST_P(StoreContract, HasADigestSecretOf32BytesThatIsItsOwn) {
  EXPECT_EQ(store().digest_secret().size(), 32u);
  VirtualClock another_clock;
  const auto another_home = GetParam().make(another_clock);
  EXPECT_NE(another_home->open()->digest_secret(), store().digest_secret());
}

TEST_P(StoreContract, FindsEverythingAgainWhenItIsReopened) {
  if (!GetParam().survives_reopen) GTEST_SKIP() << "this store keeps nothing when it is closed";
  play("claim done a; complete done a 201; claim open a; claim unknown a; mark unknown a seen=502");
  play(
      "claim free a; mark free a; resolve free freed; claim gone a refuse=9h; complete gone a 201");
  const Bytes secret = store().digest_secret();
  std::vector<StoredRecord> before;
  for (const std::string key : {"done", "open", "unknown", "free", "gone"})
    before.push_back(*read(store(), StoreScript::scope(key)));
  const auto audit = expect_answer<answer::AuditRows>(store(), request::ReadAudit{}).rows;
  reopen();
  EXPECT_EQ(store().digest_secret(), secret);
  for (const StoredRecord& stored : before) EXPECT_EQ(read(store(), stored.scope), stored);
  EXPECT_EQ(expect_answer<answer::AuditRows>(store(), request::ReadAudit{}).rows, audit);
  EXPECT_TRUE(
      expect_answer<answer::FoundProfile>(store(), request::ReadProfile{StoreScript::profile(1).id})
          .definition);
}

TEST_P(StoreContract, FindsLeasesOverAfterAReboot) {
  if (GetParam().leases_on_wall_clock) GTEST_SKIP() << "its leases do not know of a boot";
  if (!GetParam().survives_reopen) GTEST_SKIP() << "this store keeps nothing when it is closed";
  EXPECT_TRUE(play("claim k a; reboot; claim k b").starts_with("uncertain"));
  EXPECT_TRUE(
      play("claim k2 a takeover; reboot; claim k2 b takeover").starts_with("execute takeover"));
  EXPECT_TRUE(play("claim k3 a; reboot; overdue").starts_with("moved changed=1"));
  EXPECT_TRUE(play("claim k4 a lease=none; reboot; claim k4 b").starts_with("in-progress"));
}

// --- the clock

TEST_P(StoreContract, ReplaysOnAndSweepsNothingWhenTheWallClockJumpedAheadUntilItAgreesAgain) {
  if (!GetParam().guards_wall_clock) GTEST_SKIP() << "this store does not guard its wall clock";
  play("claim k a; complete k a 201; jump 2h");
  EXPECT_TRUE(play("claim k b").starts_with("replay"));
  EXPECT_TRUE(play("sweep").starts_with("moved changed=0"));
  EXPECT_TRUE(expect_answer<answer::Stats>(store(), request::Stats{}).expiry_paused);
  play("wait 30m; jump -2h");
  EXPECT_FALSE(expect_answer<answer::Stats>(store(), request::Stats{}).expiry_paused);
  EXPECT_TRUE(play("claim k b").starts_with("replay"));
  EXPECT_TRUE(play("wait 30m; claim k b").starts_with("execute"));
}

TEST_P(StoreContract, ExpiresAgainOnceAnOperatorAcceptedTheJump) {
  if (!GetParam().guards_wall_clock) GTEST_SKIP() << "this store does not guard its wall clock";
  play("claim k a; complete k a 201; jump 2h; claim k b");
  if (GetParam().survives_reopen) reopen();
  EXPECT_TRUE(play("claim k b").starts_with("replay"));
  EXPECT_EQ(play("accept-time"), "done");
  EXPECT_FALSE(expect_answer<answer::Stats>(store(), request::Stats{}).expiry_paused);
  EXPECT_TRUE(play("claim k b").starts_with("execute"));
  const auto rows = expect_answer<answer::AuditRows>(store(), request::ReadAudit{}).rows;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].audit.event, AuditEvent::time_accepted);
}

TEST_P(StoreContract, DoesNotLengthenALeaseWhenTheWallClockGoesBack) {
  EXPECT_TRUE(play("claim k a; jump -9000h; claim k b").starts_with("in-progress"));
  EXPECT_TRUE(play("wait 30s; claim k b").starts_with("uncertain"));
}

}  // namespace
}  // namespace einmal::testing
