// SQLite stores in which bytes were changed: refused, or answered with errors, or read as written.
// What a record cannot be is never handed out.

#include "einmal/base/random.hpp"
#include "einmal/core/limits.hpp"
#include "einmal/sqlite/sqlite_store.hpp"
#include "patched_file.hpp"

namespace {

using namespace einmal;

class StillClock final : public Clock {
 public:
  WallTime wall_now() const override { return WallTime{std::chrono::hours(24 * 20000)}; }
  BootTime boot_now() const override { return BootTime{std::chrono::hours(1)}; }
  BootId boot_id() const override { return {}; }
};

Scope scope(const std::string& key) { return *Scope::make("gateway", "alice", "order", key); }

void claim_and_end(Store& store, const std::string& key, bool settle) {
  event::Claim claim;
  claim.fingerprint.digest.fill(7);
  SeededRandom random(key.size());
  claim.owner = OwnerToken::draw(random);
  claim.operation_id = OperationId::draw(random);
  claim.policies.lease = std::chrono::seconds(30);
  auto profile = std::make_shared<Profile>();
  const auto decided =
      ask_transition(store, {scope(key), claim, std::shared_ptr<const Profile>(profile), {}});
  EINMAL_EXPECT(decided.has_value());
  const auto& record = std::get<decision::Execute>(*decided).record;
  if (!settle) {
    event::MarkUncertain uncertain;
    uncertain.owner = record.owner;
    uncertain.generation = record.generation;
    EINMAL_EXPECT(ask_transition(store, {scope(key), uncertain, nullptr, {}}).has_value());
    return;
  }
  event::Settle end;
  end.owner = record.owner;
  end.generation = record.generation;
  end.result.status = 201;
  end.result.headers = "Location: /orders/1\r\n";
  end.result.body = "the body of " + key;
  EINMAL_EXPECT(ask_transition(store, {scope(key), end, nullptr, {}}).has_value());
}

struct Template {
  Template() {
    SeededRandom random(1);
    auto store = open_sqlite_store(directory.file(), {}, clock, random);
    EINMAL_EXPECT(store.has_value());
    claim_and_end(**store, "settled", true);
    claim_and_end(**store, "unknown", false);
    store->reset();
    bytes = read_file(directory.file());
    EINMAL_EXPECT(bytes.find("the body of settled") != std::string::npos);  // Not left in the log.
  }
  StillClock clock;
  FuzzDirectory directory;
  std::string bytes;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Template whole;
  const auto path = whole.directory.with(patched(whole.bytes, input_text(data, size)));
  SeededRandom random(2);
  const auto store = open_sqlite_store(path, {}, whole.clock, random);
  if (!store) return 0;
  for (const auto* key : {"settled", "unknown"}) {
    const auto answer = ask(**store, request::ReadScope{scope(key), true});
    if (!answer) continue;
    const auto& found = std::get<answer::Found>(*answer).record;
    if (!found) continue;
    EINMAL_EXPECT(found->scope == scope(key));
    if (found->record.result)
      EINMAL_EXPECT(found->record.result->status >= 0 && found->record.result->status < 1000);
  }
  static_cast<void>(ask(**store, request::List{}));
  static_cast<void>(ask(**store, request::Stats{}));
  static_cast<void>(ask(**store, request::Overdue{}));
  static_cast<void>(ask(**store, request::Sweep{}));
  return 0;
}
