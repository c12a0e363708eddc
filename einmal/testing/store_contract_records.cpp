#include <vector>

#include "einmal/core/limits.hpp"
#include "einmal/testing/store_contract_helpers.hpp"

/// What the port promises of records beside the events table: bytes, identity, generations,
/// profiles, audit.
namespace einmal::testing {
namespace {

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

}  // namespace
}  // namespace einmal::testing
