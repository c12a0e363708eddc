// Claims, completes and replays one operation with an installed einmal.
#include <cstdio>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/sqlite/sqlite_store.hpp"
#include "einmal/store/store.hpp"

using namespace einmal;

namespace {

int fail(const char* what) {
  std::fprintf(stderr, "consumer: %s\n", what);
  return 1;
}

event::Claim claim(Random& random) {
  event::Claim claim;
  claim.policies.lease = std::chrono::seconds(30);
  claim.owner = OwnerToken::draw(random);
  claim.operation_id = OperationId::draw(random);
  return claim;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail("usage: consumer FILE");
  SystemClock clock;
  SystemRandom random;
  auto store = open_sqlite_store(argv[1], SqliteOptions{}, clock, random);
  if (!store) return fail(store.error().message.c_str());
  const auto scope = Scope::make("app", "alice", "create-order", "key-1");
  const auto first = ask_transition(**store, {*scope, claim(random), nullptr, {}});
  if (!first) return fail(first.error().message.c_str());
  const auto* execute = std::get_if<decision::Execute>(&*first);
  if (!execute) return fail("the first claim does not execute");

  event::Settle settle;
  settle.generation = execute->record.generation;
  settle.owner = execute->record.owner;
  settle.result.status = 201;
  settle.result.body = "order 4711";
  const auto settled = ask_transition(**store, {*scope, settle, nullptr, {}});
  if (!settled || !std::holds_alternative<decision::Ok>(*settled)) return fail("not settled");

  const auto second = ask_transition(**store, {*scope, claim(random), nullptr, {}});
  const auto* replay = second ? std::get_if<decision::Replay>(&*second) : nullptr;
  if (!replay || replay->record.result->body != "order 4711") return fail("no replay");
  std::puts("installed copy: claimed, completed, replayed");
  return 0;
}
