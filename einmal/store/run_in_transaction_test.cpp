#include "einmal/store/run_in_transaction.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>
#include <string>

namespace einmal {
namespace {

/// A session that answers what it was told to and writes down what it is asked.
class ScriptedSession final : public Session {
 public:
  std::deque<Result<Claimed>> claims;
  std::deque<Committed> commits;
  Result<bool> durable = true;
  bool conflict = false;
  std::string log;

  Result<Claimed> begin(const TransactionClaim&) override {
    log += "begin ";
    return next(claims);
  }
  Committed commit(event::Final outcome, const StoredResult&, bool keep_effect) override {
    log += outcome == event::Final::completed ? "complete" : "fail";
    log += keep_effect ? " " : " undoing ";
    return next(commits);
  }
  void roll_back() noexcept override { log += "rollback "; }
  bool had_conflict() const override { return conflict; }
  void pause(int) override { log += "pause "; }
  Result<bool> became_durable() override {
    log += "read-back ";
    return durable;
  }

 private:
  template <class T>
  static T next(std::deque<T>& queue) {
    T first = queue.front();
    if (queue.size() > 1) queue.pop_front();
    return first;
  }
};

class RunInTransaction : public ::testing::Test {
 protected:
  RunInTransaction() {
    session_.claims = {claimed::Execute{}};
    session_.commits = {committed::Durable{}};
    result_.status = 201;
  }
  std::string run(const Handler& handler) {
    const auto ran = run_in_transaction(session_, request_, handler);
    if (!ran) return "error " + std::to_string(static_cast<int>(ran.error().code));
    static const char* const names[] = {"executed",    "replayed",  "mismatch", "other profile",
                                        "in progress", "uncertain", "gone",     "released"};
    return names[ran->index()];
  }
  Handler completes() {
    return [this](const Attempt&) -> HandlerOutcome {
      ++runs_;
      return handled::Completed{result_};
    };
  }
  static std::string code(ErrorCode code) {
    return "error " + std::to_string(static_cast<int>(code));
  }

  ScriptedSession session_;
  TransactionRequest request_{*Scope::make("app", "alice", "pay", "k"), {}, {}};
  StoredResult result_;
  int runs_ = 0;
};

TEST_F(RunInTransaction, CommitsWhatTheHandlerCompletes) {
  EXPECT_EQ(run(completes()), "executed");
  EXPECT_EQ(session_.log, "begin complete ");
}

TEST_F(RunInTransaction, UndoesTheEffectOfARefusalAndCommitsTheRefusal) {
  EXPECT_EQ(run([&](const Attempt&) { return handled::Failed{result_}; }), "executed");
  EXPECT_EQ(session_.log, "begin fail undoing ");
}

TEST_F(RunInTransaction, RollsBackWhatTheHandlerReleases) {
  EXPECT_EQ(run([](const Attempt&) { return handled::Released{}; }), "released");
  EXPECT_EQ(session_.log, "begin rollback ");
}

TEST_F(RunInTransaction, RollsBackAndLetsTheExceptionThrough) {
  const Handler throws = [](const Attempt&) -> HandlerOutcome { throw std::runtime_error("no"); };
  EXPECT_THROW(run(throws), std::runtime_error);
  EXPECT_EQ(session_.log, "begin rollback ");
}

TEST_F(RunInTransaction, RunsNoHandlerUnlessTheClaimExecutes) {
  using Row = std::pair<Claimed, const char*>;
  for (const auto& [claim, answer] :
       {Row{claimed::Replay{}, "replayed"}, Row{claimed::Mismatch{}, "mismatch"},
        Row{claimed::OtherProfile{}, "other profile"}, Row{claimed::InProgress{}, "in progress"},
        Row{claimed::Uncertain{}, "uncertain"}, Row{claimed::Gone{}, "gone"}}) {
    session_.claims = {claim};
    session_.log.clear();
    EXPECT_EQ(run(completes()), answer);
    EXPECT_EQ(session_.log, "begin rollback ");
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(RunInTransaction, BeginsAnotherTransactionWhenItsSnapshotIsTooOld) {
  session_.claims = {claimed::Outdated{}, claimed::Outdated{}, claimed::Execute{}};
  EXPECT_EQ(run(completes()), "executed");
  EXPECT_EQ(session_.log, "begin rollback pause begin rollback pause begin complete ");
}

TEST_F(RunInTransaction, RunsTheHandlerAgainAfterAConflictAndGivesUpAfterItsAttempts) {
  session_.commits = {committed::Conflict{}, committed::Durable{}};
  EXPECT_EQ(run(completes()), "executed");
  EXPECT_EQ(runs_, 2);
  session_.commits = {committed::Conflict{}};
  request_.attempts = 3;
  runs_ = 0;
  EXPECT_EQ(run(completes()), code(ErrorCode::unavailable));
  EXPECT_EQ(runs_, 3);
}

TEST_F(RunInTransaction, RunsAHandlerThatThrewBecauseOfAConflictAgain) {
  session_.conflict = true;
  const Handler throws_first = [&](const Attempt&) -> HandlerOutcome {
    if (++runs_ == 1) throw std::runtime_error("could not serialize access");
    return handled::Completed{result_};
  };
  EXPECT_EQ(run(throws_first), "executed");
  EXPECT_EQ(session_.log, "begin rollback pause begin complete ");
}

TEST_F(RunInTransaction, NeverRunsAHandlerTwiceThatMustNot) {
  request_.may_run_again = false;
  session_.conflict = true;
  session_.commits = {committed::Conflict{{ErrorCode::unavailable, ""}}};
  EXPECT_EQ(run(completes()), code(ErrorCode::unavailable));
  EXPECT_EQ(runs_, 1);
  const Handler throws = [](const Attempt&) -> HandlerOutcome { throw std::runtime_error("no"); };
  EXPECT_THROW(run(throws), std::runtime_error);
}

TEST_F(RunInTransaction, ReadsBackACommitInDoubt) {
  session_.commits = {committed::InDoubt{}};
  EXPECT_EQ(run(completes()), "executed");
  session_.durable = false;
  EXPECT_EQ(run(completes()), code(ErrorCode::unavailable));
  session_.durable = failure(ErrorCode::unavailable, "no connection");
  EXPECT_EQ(run(completes()), code(ErrorCode::in_doubt));
  EXPECT_EQ(runs_, 3) << "what may have happened is not run again";
}

TEST_F(RunInTransaction, SaysWhyACommitWasRefused) {
  session_.commits = {committed::RolledBack{{ErrorCode::invalid, ""}}};
  EXPECT_EQ(run(completes()), code(ErrorCode::invalid));
}

TEST_F(RunInTransaction, RefusesALeaseAndAnImpossibleResult) {
  request_.policies.lease = std::chrono::seconds(30);
  EXPECT_EQ(run(completes()), code(ErrorCode::invalid));
  EXPECT_EQ(session_.log, "");
  request_.policies.lease.reset();
  result_.status = 99;
  EXPECT_EQ(run(completes()), code(ErrorCode::invalid));
  EXPECT_EQ(session_.log, "begin rollback ");
}

TEST_F(RunInTransaction, RebuildsOnlyABodyThatWasLeftOutByChoice) {
  request_.rebuild = [](const StoredResult& kept) {
    StoredResult rebuilt = kept;
    rebuilt.body = "rebuilt";
    return rebuilt;
  };
  claimed::Replay replay;
  for (const BodyKept kept : {BodyKept::by_choice, BodyKept::kept}) {
    replay.result.body_kept = kept;
    session_.claims = {Claimed(replay)};
    const auto ran = run_in_transaction(session_, request_, completes());
    ASSERT_TRUE(ran);
    EXPECT_EQ(std::get<ran::Replayed>(*ran).result.body,
              kept == BodyKept::by_choice ? "rebuilt" : "");
  }
}

}  // namespace
}  // namespace einmal
