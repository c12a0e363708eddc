#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "auditor.hpp"
#include "einmal/base/random.hpp"
#include "einmal/store/memory.hpp"
#include "timeline.hpp"

namespace einmal::simulation {

/// The store's machine: its wall clock can be set, its boot clock starts again with a boot.
class StoreClock final : public Clock {
 public:
  explicit StoreClock(const Timeline& timeline) : timeline_(timeline) {}

  WallTime wall_now() const override { return WallTime(wall_start + timeline_.now() + set_by_); }
  BootTime boot_now() const override { return BootTime(timeline_.now() - booted_ + uptime); }
  BootId boot_id() const override;

  void set_wall(Duration by) { set_by_ += by; }
  void reboot();

  Clocks clocks() const;

 private:
  static constexpr Duration wall_start = std::chrono::seconds(1'704'067'200);
  static constexpr Duration uptime = std::chrono::seconds(100);

  const Timeline& timeline_;
  Duration set_by_{};
  Duration booted_{};
  int boots_ = 1;
};

using Decide = Step (*)(const std::optional<Record>&, const Event&, const Now&);

/// What is durable in a history: a memory store whose every step the auditor is told, in the
/// auditor's words.
class DurableStore {
 public:
  /// Each step that matters is also told to `log`, in one line.
  DurableStore(const Timeline& timeline, Auditor& auditor, int scopes, Decide decide,
               std::function<void(const std::string&)> log);

  /// One request, durable when this returns.
  Result<Answer> run(const Request& request);
  /// The record of `scope` as it stands.
  Picture look(ScopeNumber scope);

  StoreClock& clock() { return clock_; }

 private:
  Result<Answer> ask(Request request);
  void tell(const request::Transition& transition, const Decision& decision, const Picture& before);
  void judge(const StoreStep& step);
  void run_batch(const Request& request, Result<Answer>& answer);

  StoreClock clock_;
  Auditor& auditor_;
  const int scopes_;
  const std::function<void(const std::string&)> log_;
  SeededRandom random_;
  MemoryStore store_;
};

/// The names that stand for numbers.
Scope scope_of(ScopeNumber number);
ScopeNumber number_of(const Scope& scope);
Profile profile_of(int number);
Fingerprint fingerprint_of(int profile, int body);
int profile_number(const Digest& profile);
Token token_of(const OwnerToken& owner);
Token token_of(const OperationId& operation);

}  // namespace einmal::simulation
