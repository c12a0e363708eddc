#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <memory>
#include <string>

#include "einmal/base/random.hpp"
#include "einmal/store/store.hpp"
#include "store_url.hpp"
#include "support/command.hpp"
#include "support/gateway.hpp"

/// `einmal records`, `sweep` and `doctor` beside a running gateway: what an operator does at night.

namespace einmal::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto uncertain = "504 uncertain outcome-uncertain";

class Records : public GatewayTest {
 protected:
  Ran records(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "records");
    arguments.insert(arguments.end(), {"--store", gateway_->store_url()});
    return run_einmal(std::move(arguments));
  }
  Ran on_record(const std::string& command, const std::string& key,
                std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {command, "--caller", "alice", "--operation", "create-order", "--key", key});
    return records(std::move(more));
  }
  void make_uncertain(const std::string& key) {
    upstream_.next(Play().reset());
    ASSERT_EQ(in_words(send(order(key))), uncertain);
  }
};

TEST_F(Records, are_listed_with_digests_and_filters) {
  open();
  EXPECT_EQ(in_words(send(order("secret-key"))), "201 executed");
  make_uncertain("lost-key");
  const auto all = records({"list"});
  EXPECT_EQ(all.status, 0) << all.errors;
  EXPECT_THAT(all.output, AllOf(HasSubstr("completed"), HasSubstr("uncertain"),
                                HasSubstr("outcome unknown"), HasSubstr("create-order")));
  EXPECT_THAT(all.output, Not(HasSubstr("secret-key")));
  EXPECT_THAT(all.output, Not(HasSubstr("alice")));
  const auto revealed = records({"list", "--reveal", "--state", "uncertain"});
  EXPECT_THAT(revealed.output, AllOf(HasSubstr("lost-key"), Not(HasSubstr("secret-key"))));
  const auto json = records({"list", "--json", "--state", "completed"});
  EXPECT_THAT(json.output, AllOf(HasSubstr("\"state\":\"completed\""), HasSubstr("\"status\":201"),
                                 HasSubstr("\"generation\":"), HasSubstr("\"effect\":\"known\"")));
  EXPECT_THAT(records({"list", "--caller", "bob"}).output, HasSubstr("no records"));
  EXPECT_THAT(records({"list", "--min-age", "1h"}).output, HasSubstr("no records"));
  EXPECT_EQ(records({"list", "--state", "strange"}).status, 2);
  EXPECT_EQ(records({"list", "--min-age", "5"}).status, 2);
}

TEST_F(Records, that_are_uncertain_are_resolved_with_evidence_and_then_replayed) {
  open();
  make_uncertain("K");
  const auto body = directory_.file("body.json");
  std::ofstream(body) << "{\"id\":\"found\"}";
  const std::vector<std::string> result{"--completed",
                                        "--status",
                                        "201",
                                        "--body-file",
                                        body,
                                        "--header",
                                        "Location: /orders/found",
                                        "--evidence",
                                        "seen in the ledger"};
  auto with_dry_run = result;
  with_dry_run.insert(with_dry_run.end(), {"--dry-run"});
  EXPECT_EQ(on_record("resolve", "K", with_dry_run).status, 0);
  EXPECT_EQ(in_words(send(order("K"))), uncertain);
  EXPECT_EQ(on_record("resolve", "K", result).status, 1)
      << "without a terminal only --yes says yes";
  EXPECT_EQ(in_words(send(order("K"))), uncertain);

  auto with_yes = result;
  with_yes.insert(with_yes.end(), {"--yes"});
  const auto resolved = on_record("resolve", "K", with_yes);
  EXPECT_EQ(resolved.status, 0) << resolved.errors;
  const auto answer = send(order("K"));
  EXPECT_EQ(in_words(answer), "201 resolved");
  EXPECT_EQ(answer.body, "{\"id\":\"found\"}");
  EXPECT_EQ(answer.header("Location"), "/orders/found");
  EXPECT_EQ(upstream_.effects("K"), 1u);
  const auto shown = on_record("show", "K");
  EXPECT_THAT(shown.output, AllOf(HasSubstr("resolved"), HasSubstr("seen in the ledger")));
  EXPECT_EQ(on_record("resolve", "K", with_yes).status, 1) << "it is settled";
}

TEST_F(Records, that_are_uncertain_can_be_freed_and_execute_once_more) {
  open();
  make_uncertain("K");
  const auto freed =
      on_record("resolve", "K", {"--free", "--evidence", "the upstream was down", "--yes"});
  EXPECT_EQ(freed.status, 0) << freed.errors;
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  EXPECT_EQ(in_words(send(order("K"))), "201 replayed");
}

TEST_F(Records, show_what_was_before_and_after_and_their_history_outlives_them) {
  open();
  make_uncertain("K");
  const auto json = on_record("show", "K", {"--json"}).output;
  EXPECT_THAT(json, AllOf(HasSubstr("\"before\":\"processing\",\"after\":\"uncertain\""),
                          Not(HasSubstr("alice")), Not(HasSubstr("\"K\""))));
  const auto id = json.substr(json.find("\"id\":\"") + 6, 36);
  const auto by_id = [&](const std::string& command, std::vector<std::string> more) {
    more.insert(more.begin(), {command, "--id", id});
    return records(std::move(more));
  };
  EXPECT_EQ(by_id("resolve", {"--failed", "--status", "402", "--no-body", "--evidence",
                              "told\x1b[31m by phone\nat night", "--yes"})
                .status,
            0);
  EXPECT_EQ(in_words(send(order("K"))), "402 resolved");
  EXPECT_EQ(by_id("forget", {"--evidence", "asked for", "--yes"}).status, 0);
  for (const auto& gone : {on_record("show", "K"), by_id("show", {})}) {
    EXPECT_EQ(gone.status, 0) << gone.errors;
    EXPECT_THAT(gone.output,
                AllOf(HasSubstr("the record is gone"), HasSubstr("uncertain -> failed, by "),
                      HasSubstr("failed -> nothing"), HasSubstr("asked for"),
                      HasSubstr("told\\x1b[31m by phone\\x0aat night")));
  }
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Records, are_changed_only_if_they_are_still_what_was_looked_at) {
  open();
  make_uncertain("K");
  const std::vector<std::string> free{"--free", "--evidence", "x", "--yes", "--json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), free.begin(), free.end());
    return on_record("resolve", "K", std::move(more));
  };
  EXPECT_EQ(with({"--generation", "77"}).status, 1);
  EXPECT_EQ(with({"--generation", "77", "--dry-run"}).status, 1);
  EXPECT_EQ(in_words(send(order("K"))), uncertain);
  const auto dry = with({"--generation", "1", "--dry-run"});
  EXPECT_EQ(dry.status, 0) << dry.errors;
  EXPECT_THAT(dry.output, HasSubstr("\"generation\":1,\"would_be\":\"resolved\""));
  EXPECT_EQ(in_words(send(order("K"))), uncertain) << "a dry run changes nothing";
  const auto done = with({"--generation", "1"});
  EXPECT_EQ(done.status, 0) << done.errors;
  EXPECT_THAT(done.output, HasSubstr("\"done\":\"resolved\""));
  EXPECT_THAT(records({"list", "--state", "freed"}).output, HasSubstr("freed"));
  EXPECT_THAT(records({"list", "--state", "expired"}).output, HasSubstr("no records"));
  EXPECT_EQ(with({"--dry-run"}).status, 1) << "it is settled: that would be refused";
  EXPECT_EQ(on_record("doubt", "K", {"--evidence", "x", "--yes"}).status, 1)
      << "only what is processing without a lease";
}

TEST_F(Records, are_changed_after_a_person_at_a_terminal_was_told_the_risk_and_said_yes) {
  open();
  make_uncertain("K");
  const auto at_a_terminal = [&](const std::string& says) {
    // script(1) gives the command a terminal and types what comes through the pipe.
    const auto command = sibling_program("einmal") + " records resolve --store '" +
                         gateway_->store_url() +
                         "' --caller alice --operation create-order --key K --free --evidence seen";
    ChildProcess person(
        {"/bin/sh", "-c", "echo " + says + " | script -qec \"$0\" /dev/null", command});
    const auto exit = person.wait_for_exit();
    person.wait_for_output_end();
    EXPECT_THAT(person.output(), HasSubstr("a second effect. Free it? [y/N]")) << person.errors();
    return exit ? exit->status : -1;
  };
  for (const auto* no : {"n", "''", "yesterday"}) {
    EXPECT_EQ(at_a_terminal(no), 1) << no;
    EXPECT_EQ(in_words(send(order("K"))), uncertain) << no;
  }
  EXPECT_EQ(at_a_terminal("y"), 0);
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Records, in_progress_are_left_alone_unless_forced) {
  open();
  const auto gate = std::make_shared<Gate>();
  upstream_.next(Play().wait(gate).answer(201));
  auto owner = std::async(std::launch::async, [&] { return send(order("K")); });
  ASSERT_TRUE(upstream_.wait_for(1));
  EXPECT_EQ(on_record("resolve", "K", {"--free", "--evidence", "x", "--yes"}).status, 1);
  EXPECT_EQ(on_record("forget", "K", {"--evidence", "x", "--yes"}).status, 1);
  gate->open();
  EXPECT_EQ(in_words(owner.get()), "201 executed");
  EXPECT_EQ(on_record("forget", "K", {"--evidence", "asked by the customer", "--yes"}).status, 0);
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
}

TEST_F(Records, without_a_lease_whose_owner_is_gone_are_doubted_and_then_settled) {
  open();
  {  // As a program does that uses the library without a lease, and dies.
    const SystemClock clock;
    SystemRandom random;
    const auto store = programs::open_store(gateway_->store_url(), {}, clock, random);
    ASSERT_TRUE(store) << store.error().message;
    event::Claim claim;
    claim.owner = OwnerToken::draw(random);
    claim.operation_id = OperationId::draw(random);
    claim.policies.lease.reset();
    const auto claimed = ask_transition(
        **store, {*Scope::make("app", "alice", "refund", "R1"), claim, nullptr, {}, true});
    ASSERT_TRUE(claimed) << claimed.error().message;
    ASSERT_TRUE(std::holds_alternative<decision::Execute>(*claimed));
  }
  const auto on_refund = [&](const std::string& command, std::vector<std::string> more) {
    more.insert(more.begin(), {command, "--namespace", "app", "--caller", "alice", "--operation",
                               "refund", "--key", "R1"});
    return records(std::move(more));
  };
  EXPECT_THAT(records({"list", "--namespace", "app"}).output, HasSubstr("processing"));
  EXPECT_EQ(on_refund("resolve", {"--free", "--evidence", "x", "--yes"}).status, 1);
  EXPECT_THAT(on_refund("doubt", {"--evidence", "x", "--dry-run"}).output,
              HasSubstr("would be uncertain"));
  EXPECT_THAT(records({"list", "--namespace", "app"}).output, HasSubstr("processing"));
  const auto doubted = on_refund("doubt", {"--evidence", "host a7 was replaced", "--yes"});
  EXPECT_EQ(doubted.status, 0) << doubted.errors;
  EXPECT_THAT(records({"list", "--namespace", "app"}).output, HasSubstr("operator's doubt"));
  EXPECT_EQ(on_refund("resolve", {"--free", "--evidence", "no row", "--yes"}).status, 0);
  EXPECT_THAT(on_refund("show", {}).output,
              AllOf(HasSubstr("processing -> uncertain, by "), HasSubstr("host a7 was replaced"),
                    HasSubstr("uncertain -> freed, by ")));
}

TEST_F(Records, that_do_not_exist_or_are_not_named_are_told_apart_from_failures) {
  open();
  EXPECT_EQ(on_record("show", "nothing").status, 1);
  EXPECT_EQ(records({"show", "--key", "K"}).status, 2);
  EXPECT_EQ(records({"show", "--id", "no-uuid"}).status, 2);
  EXPECT_EQ(on_record("resolve", "K", {"--completed", "--evidence", "x"}).status, 2);
  EXPECT_EQ(on_record("resolve", "K", {"--evidence", "x"}).status, 2);
  EXPECT_EQ(run_einmal({"records", "list", "--store", "mysql://x"}).status, 2);
  EXPECT_NE(run_einmal({"records", "list", "--store", "sqlite:/no/such/file.db"}).status, 0);
}

TEST_F(Records, are_counted_and_swept) {
  open({.defaults = "retention = \"5s\"\n"});  // Longer than all of them take.
  for (int i = 0; i < 20; ++i) send(order("K" + std::to_string(i)));
  make_uncertain("lost");
  gateway_->kill();
  const auto stats = records({"stats", "--json"});
  EXPECT_EQ(stats.status, 0) << stats.errors;
  EXPECT_THAT(stats.output, HasSubstr("\"uncertain\":{\"records\":1"));
  // Retention runs although no gateway does.
  EXPECT_TRUE(eventually([&] {
    return run_einmal({"sweep", "--store", gateway_->store_url(), "--dry-run"})
               .output.find("20 records are due") == 0;
  }));
  const auto swept = run_einmal({"sweep", "--store", gateway_->store_url()});
  EXPECT_EQ(swept.status, 0) << swept.errors;
  EXPECT_THAT(swept.output, HasSubstr("20 removed"));
  const auto left = records({"list", "--json", "--reveal"});
  EXPECT_THAT(left.output, AllOf(HasSubstr("\"key\":\"lost\""), Not(HasSubstr("\"key\":\"K"))))
      << "an uncertain record is never swept";
}

TEST_F(Records, worth_a_look_are_named_by_the_doctor) {
  open();
  EXPECT_EQ(in_words(send(order("K"))), "201 executed");
  const auto well = run_einmal({"doctor", "--config", gateway_->config_file()});
  // The server of these tests runs without fsync, which the doctor rightly calls ill.
  if (gateway_->store_url().starts_with("sqlite:")) {
    EXPECT_EQ(well.status, 0) << well.output << well.errors;
  }
  make_uncertain("lost");
  const auto ill = run_einmal({"doctor", "--store", gateway_->store_url()});
  EXPECT_EQ(ill.status, 1);
  EXPECT_THAT(ill.output, HasSubstr("1 uncertain"));
  EXPECT_EQ(run_einmal({"doctor"}).status, 2);
}

TEST(Demo, keeps_all_its_promises) {
  const auto demo = run_einmal({"demo", "--plain"});
  EXPECT_EQ(demo.status, 0) << demo.output << demo.errors;
  EXPECT_THAT(demo.output, HasSubstr("promises held"));
}

}  // namespace
}  // namespace einmal::test
