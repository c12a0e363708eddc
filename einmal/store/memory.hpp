#pragma once

#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/base/random.hpp"
#include "einmal/core/clock_guard.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

struct MemoryOptions {
  Duration audit_retention = std::chrono::hours(24 * 400);
  /// Leases end by the wall clock, as in a store whose server offers no other: what such a store is
  /// compared with.
  bool leases_on_wall_clock = false;
  /// The rules. Anything but `decide` is for tests that must see a broken rule caught.
  Step (*decide)(const std::optional<Record>&, const Event&, const Now&) = &einmal::decide;
};

/// The port on plain maps: every rule, nothing that survives the process. It is what every other
/// store is compared with, and the store of simulations. Answers inside `submit`, thread-safe; a
/// command submitted from `completed` is answered before `submit` returns.
class MemoryStore final : public Store {
 public:
  /// `clock` must outlive the store; `random` is used here only.
  MemoryStore(const Clock& clock, Random& random, MemoryOptions options = {});

  const Capabilities& capabilities() const override { return capabilities_; }
  void submit(Command& command) override;
  const Bytes& digest_secret() const override { return digest_secret_; }
  /// Never fires: nobody else can change a memory store.
  void on_foreign_change(std::function<void()> listener) override;
  void await_foreign_changes(bool wanted) override;

 private:
  /// The order of `Scope::canonical_bytes`, in which pages are listed.
  struct CanonicalOrder {
    bool operator()(const Scope& a, const Scope& b) const;
  };

  Now look();
  Result<Answer> run(const Request& request);
  Answer on(const request::Transition& transition, const Now& now);
  Answer on(const request::ReadScope& read, const Now& now);
  Answer on(const request::ReadOperation& read, const Now& now);
  Answer on(const request::ReadProfile& read, const Now& now);
  Answer on(const request::ReadAudit& read, const Now& now);
  Answer on(const request::Overdue& overdue, const Now& now);
  Answer on(const request::Sweep& sweep, const Now& now);
  Answer on(const request::List& list, const Now& now);
  Answer on(const request::Stats& stats, const Now& now);
  Answer on(const request::LiveOperations& live, const Now& now);
  Answer on(const request::CountCaller& count, const Now& now);
  Answer on(const request::AdvanceGenerations& advance, const Now& now);
  Answer on(const request::AcceptTime& accept, const Now& now);
  Answer on(const request::StartWorkflow& start, const Now& now);
  Answer on(const request::PickWorkflows& pick, const Now& now);
  Answer on(const request::AdvanceWorkflow& advance, const Now& now);
  Answer on(const request::ReadWorkflow& read, const Now& now);
  Answer on(const request::ResumeWorkflow& resume, const Now& now);
  Answer on(const request::CountWorkflows& count, const Now& now);

  std::optional<Record> record_of(const Scope& scope) const;
  Decision step(const Scope& scope, const Event& event, const Actor& actor, const Now& now);
  void put(const Scope& scope, Record record);
  void erase(const Scope& scope);
  void note_of_the_store(AuditEvent event, const Actor& actor, const Now& now);
  void drop_old_audit(std::size_t limit, const Now& now);

  /// A row, and until when nobody else may pick it.
  struct Workflow {
    WorkflowRow row;
    OwnerToken worker;
    Lease until;
  };
  static bool is_due(const Workflow& workflow, const Now& now);

  const Capabilities capabilities_;
  const Clock& clock_;
  const MemoryOptions options_;
  Bytes digest_secret_;

  std::mutex mutex_;  // guards everything below
  ClockGuard guard_;
  std::uint64_t last_generation_ = 0;
  std::map<Scope, Record, CanonicalOrder> records_;
  std::unordered_map<OperationId, Scope> scope_of_operation_;
  std::map<Digest, Bytes> profiles_;
  std::vector<AuditRow> audit_;
  std::map<OperationId, Workflow> workflows_;
};

}  // namespace einmal
