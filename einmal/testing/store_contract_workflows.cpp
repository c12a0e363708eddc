#include <vector>

#include "einmal/testing/describe.hpp"
#include "einmal/testing/memory_home.hpp"
#include "einmal/testing/random_commands.hpp"
#include "einmal/testing/store_contract_helpers.hpp"

/// What the port promises of the rows of workflows.
namespace einmal::testing {
namespace {

request::StartWorkflow start(const std::string& key, Random& random,
                             const std::string& definition = "refund/1") {
  request::StartWorkflow start{scope_of("app", "alice", "refund", key),
                               claim_by(OwnerToken::draw(random), random), nullptr, definition,
                               every_byte(300)};
  start.claim.policies.lease.reset();
  return start;
}

Record started(Store& store, request::StartWorkflow request) {
  return std::get<decision::Execute>(expect_answer<Decision>(store, std::move(request))).record;
}

request::PickWorkflows pick(OwnerToken worker, std::size_t limit = 10) {
  return {worker, 30s, {"mail/1", "refund/1"}, limit};
}

std::vector<WorkflowRow> picked(Store& store, OwnerToken worker, std::size_t limit = 10) {
  return expect_answer<answer::Workflows>(store, pick(worker, limit)).rows;
}

request::AdvanceWorkflow advance(const WorkflowRow& row, OwnerToken worker,
                                 request::WorkflowNext next, Bytes append = {}) {
  return {row.id, worker, row.fence, std::move(append), {}, std::move(next)};
}

answer::Advanced answer_to(Store& store, Request request) {
  return expect_answer<answer::Advanced>(store, std::move(request));
}

std::optional<WorkflowRow> kept(Store& store, OperationId id) {
  auto rows = expect_answer<answer::Workflows>(store, request::ReadWorkflow{id}).rows;
  return rows.empty() ? std::nullopt : std::optional(std::move(rows.front()));
}

TEST_P(StoreContract, KeepsTheIntentOfAWorkflowWithItsClaim) {
  ASSERT_TRUE(store().capabilities().workflows);
  auto request = start("k", random());
  const Record record = started(store(), request);
  EXPECT_FALSE(record.lease);
  EXPECT_TRUE(std::get<decision::Execute>(expect_answer<Decision>(store(), request)).repeated);
  auto other = start("k", random());
  EXPECT_TRUE(
      std::holds_alternative<decision::InProgress>(expect_answer<Decision>(store(), other)));
  if (GetParam().survives_reopen) reopen();
  const auto row = kept(store(), record.operation_id);
  ASSERT_TRUE(row);
  EXPECT_EQ(*row, (WorkflowRow{record.operation_id, request.scope, "refund/1", "", request.input,
                               "", 0, false, record.generation, record.owner}));
  EXPECT_FALSE(kept(store(), OperationId::draw(random())));
}

TEST_P(StoreContract, GivesADueWorkflowToOneWorkerUntilItsLeaseIsOver) {
  const OwnerToken one = OwnerToken::draw(random()), two = OwnerToken::draw(random());
  started(store(), start("k", random()));
  started(store(), start("unknown", random(), "refund/9"));
  const auto mine = picked(store(), one);
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].fence, 1u);
  EXPECT_TRUE(picked(store(), two).empty());
  clock().advance(20s);
  EXPECT_EQ(answer_to(store(), advance(mine[0], one, request::HoldWorkflow{30s}, "a")),
            answer::Advanced::done);
  clock().advance(29s);
  EXPECT_TRUE(picked(store(), two).empty());
  clock().advance(1s);
  const auto theirs = picked(store(), two);
  ASSERT_EQ(theirs.size(), 1u);
  EXPECT_EQ(theirs[0].fence, 2u);
  EXPECT_EQ(theirs[0].journal, "a");
  for (const request::WorkflowNext& next : std::vector<request::WorkflowNext>{
           request::HoldWorkflow{1h}, request::DelayWorkflow{1h}, request::StopWorkflow{},
           request::FinishWorkflow{}, request::ReleaseWorkflow{}}) {
    auto late = advance(mine[0], one, next, "late");
    if (auto* finish = std::get_if<request::FinishWorkflow>(&late.next)) finish->result = created();
    EXPECT_EQ(answer_to(store(), late), answer::Advanced::lost);
  }
  EXPECT_EQ(kept(store(), mine[0].id)->journal, "a");
  const auto unknown = expect_answer<answer::WorkflowCounts>(store(), request::CountWorkflows{});
  using Of = answer::WorkflowCounts::OfDefinition;
  EXPECT_EQ(unknown.definitions,
            (std::vector<Of>{Of{"refund/1", 1, 0, 0}, Of{"refund/9", 1, 1, 0}}));
}

TEST_P(StoreContract, ServesTheLongestDueWorkflowFirstAndADelayedOneLater) {
  const OwnerToken one = OwnerToken::draw(random());
  const Record first = started(store(), start("1", random()));
  clock().advance(1s);
  const Record second = started(store(), start("2", random()));
  auto mine = picked(store(), one, 1);
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].id, first.operation_id);
  EXPECT_EQ(answer_to(store(), advance(mine[0], one, request::DelayWorkflow{10s}, "try")),
            answer::Advanced::done);
  EXPECT_EQ(answer_to(store(), advance(mine[0], one, request::HoldWorkflow{10s})),
            answer::Advanced::lost)
      << "a worker that gave it back has it no more";
  mine = picked(store(), one);
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].id, second.operation_id);
  clock().advance(10s);
  mine = picked(store(), one);
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].id, first.operation_id);
  EXPECT_EQ(mine[0].journal, "try");
}

TEST_P(StoreContract, SettlesTheRecordOfAWorkflowWithItsLastStep) {
  const OwnerToken one = OwnerToken::draw(random());
  const auto request = start("k", random());
  started(store(), request);
  const auto mine = picked(store(), one);
  auto last = advance(mine[0], one, request::FinishWorkflow{event::Final::failed, created("no")});
  EXPECT_EQ(answer_to(store(), last), answer::Advanced::done);
  EXPECT_EQ(read(store(), request.scope)->condition, Condition::failed);
  EXPECT_EQ(read(store(), request.scope)->record.result->body, "no");
  EXPECT_FALSE(kept(store(), mine[0].id));
  EXPECT_EQ(answer_to(store(), last), answer::Advanced::lost);
}

TEST_P(StoreContract, ReleasesTheRecordOfAWorkflowThatDidNothing) {
  const OwnerToken one = OwnerToken::draw(random());
  const auto request = start("k", random());
  started(store(), request);
  const auto mine = picked(store(), one);
  EXPECT_EQ(answer_to(store(), advance(mine[0], one, request::ReleaseWorkflow{})),
            answer::Advanced::done);
  EXPECT_FALSE(read(store(), request.scope));
  EXPECT_FALSE(kept(store(), mine[0].id));
  const Record again = started(store(), start("k", random()));
  EXPECT_NE(again.operation_id, mine[0].id);
}

TEST_P(StoreContract, StagesWorkWithTheStepThatAsksForIt) {
  const OwnerToken one = OwnerToken::draw(random());
  const auto request = start("k", random());
  started(store(), request);
  const auto mine = picked(store(), one);
  auto step = advance(mine[0], one, request::HoldWorkflow{30s}, "staged");
  const OperationId mail = OperationId::draw(random());
  step.staged = {{mail, "mail/1", "receipt", every_byte(256)}};
  auto stale = step;
  stale.fence = 7;
  EXPECT_EQ(answer_to(store(), stale), answer::Advanced::lost);
  EXPECT_FALSE(kept(store(), mail));
  EXPECT_EQ(answer_to(store(), step), answer::Advanced::done);
  const auto staged = picked(store(), one);
  ASSERT_EQ(staged.size(), 1u);
  EXPECT_EQ(staged[0], (WorkflowRow{mail, request.scope, "mail/1", "receipt", every_byte(256), "",
                                    1, false, Generation{}, OwnerToken()}));
  auto done = advance(staged[0], one, request::FinishWorkflow{event::Final::completed, created()});
  EXPECT_EQ(answer_to(store(), done), answer::Advanced::done);
  EXPECT_FALSE(kept(store(), mail));
  EXPECT_EQ(read(store(), request.scope)->condition, Condition::processing);
}

TEST_P(StoreContract, MakesAStoppedWorkflowUncertainUntilSomebodyResumesIt) {
  const OwnerToken one = OwnerToken::draw(random());
  const auto request = start("k", random());
  started(store(), request);
  auto mine = picked(store(), one);
  EXPECT_EQ(answer_to(store(), advance(mine[0], one, request::StopWorkflow{}, "doubt")),
            answer::Advanced::done);
  EXPECT_EQ(read(store(), request.scope)->condition, Condition::uncertain);
  clock().advance(24h);
  EXPECT_TRUE(picked(store(), one).empty());
  EXPECT_EQ(answer_to(store(), request::ResumeWorkflow{mine[0].id, 9, "x"}),
            answer::Advanced::lost);
  EXPECT_EQ(answer_to(store(), request::ResumeWorkflow{mine[0].id, 1, " settled"}),
            answer::Advanced::done);
  EXPECT_EQ(answer_to(store(), request::ResumeWorkflow{mine[0].id, 1, "x"}),
            answer::Advanced::lost);
  mine = picked(store(), one);
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].journal, "doubt settled");
  auto last = advance(mine[0], one, request::FinishWorkflow{event::Final::completed, created()});
  EXPECT_EQ(answer_to(store(), last), answer::Advanced::done);
  EXPECT_EQ(read(store(), request.scope)->condition, Condition::completed);
}

TEST_P(StoreContract, LetsAnOperatorsWordStandAgainstAWorkflow) {
  const OwnerToken one = OwnerToken::draw(random());
  const auto resolve = [&](const request::StartWorkflow& request, const Record& record) {
    event::Resolve by_hand{record.generation, event::Resolution::completed, created("by hand"),
                           SettledBy::operator_, true};
    request::Transition resolution{request.scope, by_hand, nullptr, {"anna", "asked the bank"}};
    ASSERT_TRUE(std::holds_alternative<decision::Ok>(
        expect_answer<Decision>(store(), std::move(resolution))));
  };
  const auto running = start("running", random()), stopped = start("stopped", random());
  const Record first = started(store(), running), second = started(store(), stopped);
  auto mine = picked(store(), one);
  ASSERT_EQ(mine.size(), 2u);
  const std::size_t of_first = mine[0].id == first.operation_id ? 0 : 1;
  EXPECT_EQ(answer_to(store(), advance(mine[1 - of_first], one, request::StopWorkflow{})),
            answer::Advanced::done);
  resolve(running, first);
  resolve(stopped, second);
  auto last = advance(mine[of_first], one,
                      request::FinishWorkflow{event::Final::failed, created("too late")});
  EXPECT_EQ(answer_to(store(), last), answer::Advanced::superseded);
  EXPECT_EQ(answer_to(store(), request::ResumeWorkflow{second.operation_id, 1, ""}),
            answer::Advanced::superseded);
  for (const auto* request : {&running, &stopped}) {
    EXPECT_EQ(read(store(), request->scope)->record.result->body, "by hand");
  }
  EXPECT_TRUE(expect_answer<answer::WorkflowCounts>(store(), request::CountWorkflows{})
                  .definitions.empty());
}

TEST_P(StoreContract, RefusesWorkflowsBeyondTheLimits) {
  const auto refused = [&](Request request) {
    const auto answer = ask(store(), std::move(request));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::invalid);
  };
  auto leased = start("k", random());
  leased.claim.policies.lease = 1s;
  refused(leased);
  auto large = start("k", random());
  large.input.assign((std::size_t{1} << 20) + 1, 'x');
  refused(large);
  refused(start("k", random(), ""));
  refused(request::PickWorkflows{OwnerToken::draw(random()), 0s, {"refund/1"}, 1});
}

/// Draws requests about few workflows from a seed; what they are about comes from both sides'
/// equal answers.
class RandomWorkflows {
 public:
  RandomWorkflows(std::uint64_t seed, VirtualClock& clock) : random_(seed), clock_(clock) {}

  Request next() {
    const std::uint64_t which = random_.below(16);
    if (which < 3) return starting();
    if (which < 7) return pick(worker(), 1 + random_.below(3));
    if (which < 13 && !rows_.empty()) return step();
    if (which == 13 && !rows_.empty()) return request::ResumeWorkflow{some().id, some().fence, "r"};
    if (which == 14) return request::CountWorkflows{};
    clock_.advance(std::chrono::seconds(random_.below(40)));
    return rows_.empty() ? Request(request::CountWorkflows{}) : request::ReadWorkflow{some().id};
  }
  void learn(const Answer& answer) {
    const auto* rows = std::get_if<answer::Workflows>(&answer);
    if (!rows) return;
    for (const WorkflowRow& row : rows->rows) rows_.push_back(row);
    while (rows_.size() > 6) rows_.erase(rows_.begin());
  }

 private:
  OwnerToken worker() {
    Bytes bytes(16, '\1');
    bytes[15] = static_cast<char>(random_.below(2));
    return *OwnerToken::from_bytes(bytes);
  }
  const WorkflowRow& some() { return rows_[random_.below(rows_.size())]; }
  request::StartWorkflow starting() {
    auto request = start(std::to_string(random_.below(4)), random_,
                         random_.below(5) == 0 ? "other/1" : "refund/1");
    request.claim.fingerprint.digest[0] = random_.below(8) == 0 ? 1 : 0;
    return request;
  }
  request::AdvanceWorkflow step() {
    auto request = advance(some(), worker(), request::HoldWorkflow{10s}, "j");
    switch (random_.below(6)) {
      case 0:
        request.next = request::DelayWorkflow{std::chrono::seconds(random_.below(20))};
        break;
      case 1:
        request.next = request::StopWorkflow{};
        break;
      case 2:
        request.next = request::FinishWorkflow{event::Final::completed, created("r")};
        break;
      case 3:
        request.next = request::ReleaseWorkflow{};
        break;
      case 4:
        request.staged.push_back({OperationId::draw(random_), "mail/1", "m", "input"});
        break;
      default:
        break;
    }
    return request;
  }

  SeededRandom random_;
  VirtualClock& clock_;
  std::vector<WorkflowRow> rows_;
};

TEST_P(RandomCommands, OfWorkflowsAreAnsweredAsTheMemoryStoreAnswersThem) {
  const std::uint64_t first = seed_or(1);
  for (std::uint64_t seed = first; seed < first + 8; ++seed) {
    VirtualClock clock;
    const auto home = GetParam().make(clock);
    const auto tested = home->open();
    MemoryOptions options;
    options.leases_on_wall_clock = GetParam().leases_on_wall_clock;
    const StoreFactory memory_stores = memory_factory(options);
    const auto memory_home = memory_stores.make(clock);
    const auto memory = memory_home->open();
    RandomWorkflows draw(seed, clock);
    for (int i = 0; i < 150; ++i) {
      const Request request = draw.next();
      const auto a = ask(*tested, request), b = ask(*memory, request);
      ASSERT_EQ(describe(a), describe(b)) << "EINMAL_SEED=" << seed << ", command " << i;
      if (a) draw.learn(*a);
    }
  }
}

}  // namespace
}  // namespace einmal::testing
