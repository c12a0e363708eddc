#include <set>
#include <vector>

#include "einmal/testing/store_contract_helpers.hpp"

/// What the port promises of many records: lists, counts, bounded batches.
namespace einmal::testing {
namespace {

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

}  // namespace
}  // namespace einmal::testing
