#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/core/decide.hpp"
#include "einmal/core/record.hpp"
#include "einmal/core/scope.hpp"

/// The store port. Asynchronous and batching: commands are objects linked into a batch; what waits
/// is committed together; one command alone never waits for company; each answer is durable before
/// it is given; one failing command does not fail its batch. The port knows no event loop.

namespace einmal {

/// A fingerprint profile: its identity (SHA-256 of `definition`) and its canonical form. Kept in
/// the store, so that an upgrade or another gateway's configuration can be recomputed instead of
/// read as a mismatch.
struct Profile {
  Digest id{};
  Bytes definition;
};

/// Who acts on a record from outside its owner, and on what grounds. Goes to the audit.
struct Actor {
  std::string who;
  std::string evidence;
  friend bool operator==(const Actor&, const Actor&) = default;
};

struct StoredRecord {
  Scope scope;
  Record record;
  Condition condition = Condition::absent;  ///< As the store's clock saw it when it was read.
  std::optional<Duration> lease_left;       ///< Of a processing one, by the store's clock.
  Duration age{};                           ///< Since `claimed`, by the store's clock.
  friend bool operator==(const StoredRecord&, const StoredRecord&) = default;
};

struct AuditRow {
  WallTime at{};
  std::optional<Scope> scope;  ///< Nothing: an event of the whole store.
  OperationId operation_id;    ///< Of the record as it stood; nil without one.
  Audit audit;
  Actor actor;  ///< Of Doubt, Resolve, Forget and the events of the whole store; empty otherwise.
  friend bool operator==(const AuditRow&, const AuditRow&) = default;
};

namespace request {

/// One event on one scope: decided and made durable as one atomic step.
struct Transition {
  Scope scope;
  Event event;  ///< A Claim's generation is set by the store.
  /// With Claim: kept when the claim creates a record and the store does not have it yet.
  std::shared_ptr<const Profile> profile;
  Actor actor;  ///< With Doubt, Resolve, Forget: `who` is required.
  /// With Claim: whether a record it creates must be found quickly by ReadOperation, which costs a
  /// store an index entry. False for operations that publish no operation resource.
  bool findable_by_id = true;
};
/// The record as stored, whatever its condition: one that is freed or expired and not swept yet is
/// found with `Condition::absent`. Without body: the result comes with neither headers nor body.
struct ReadScope {
  Scope scope;
  bool with_body = true;
};
struct ReadOperation {
  OperationId id;
  bool with_body = true;
  /// Also among the records that are not findable_by_id, which may take as long as a whole List:
  /// for operators, never on behalf of a client.
  bool search = false;
};
struct ReadProfile {
  Digest id{};
};
/// The newest `limit` rows that match both.
struct ReadAudit {
  std::optional<Scope> scope;
  std::optional<OperationId> id;
  std::size_t limit = 1000;
};
/// Turns up to `limit` overdue records into uncertain ones (event::Overdue), which of them is the
/// store's choice.
struct Overdue {
  std::size_t limit = 200;
};
/// Removes or strips up to `limit` records (event::Sweep), and drops as many audit rows past the
/// audit's own retention. Nothing while expiry is paused.
struct Sweep {
  std::size_t limit = 200;
};
/// Pages through the records in an order of the store's own: one that stands all the while and
/// whose condition does not change is listed exactly once.
struct List {
  std::optional<std::string> name_space, caller, operation;
  std::vector<Condition> conditions;  ///< Empty: all, absent ones (expired, freed) included.
  std::optional<Duration> min_age;
  std::size_t limit = 100;  ///< A page. Listed as without body.
  std::string after;        ///< `next` of the page before.
};
struct Stats {};
/// Names of the operations of a namespace that have live records, in ascending byte order.
struct LiveOperations {
  std::string name_space;
};
/// How many records of a caller are live, and how many of these uncertain.
struct CountCaller {
  std::string name_space, caller;
};
/// After a restore that lost commits: moves the generation counter on by 2^32.
struct AdvanceGenerations {
  Actor actor;
};
/// An operator accepts the wall clock after a jump: expiry and sweep go on.
struct AcceptTime {
  Actor actor;
};

}  // namespace request

using Request =
    std::variant<request::Transition, request::ReadScope, request::ReadOperation,
                 request::ReadProfile, request::ReadAudit, request::Overdue, request::Sweep,
                 request::List, request::Stats, request::LiveOperations, request::CountCaller,
                 request::AdvanceGenerations, request::AcceptTime>;

namespace answer {

struct Found {
  std::optional<StoredRecord> record;
};  ///< ReadScope, ReadOperation
struct FoundProfile {
  std::optional<Bytes> definition;
};
struct AuditRows {
  std::vector<AuditRow> rows;
};  ///< Newest last.
/// Overdue, Sweep.
struct Moved {
  std::size_t changed = 0;   ///< Made uncertain; removed.
  std::size_t stripped = 0;  ///< Tombstones whose result was taken.
  bool more = false;         ///< More are due: ask again.
};
struct Page {
  std::vector<StoredRecord> records;
  std::string next;
};  ///< `next` empty: the last page.
struct Stats {
  struct PerCondition {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;  ///< Of stored headers, bodies and resource ids.
  };
  /// freed: until its retention ends; expired: whatever Sweep would remove.
  PerCondition processing, completed, failed, uncertain, freed, tombstone, expired;
  /// The greatest age since `claimed`, by the store's clock.
  std::optional<Duration> oldest_live, oldest_processing, oldest_uncertain;
  std::uint64_t sweep_backlog = 0;    ///< Records that Sweep would touch now.
  std::optional<Duration> sweep_lag;  ///< How long the first of them has been due.
  Generation last_generation{};
  bool expiry_paused = false;
};
struct Names {
  std::vector<std::string> names;
};
struct CallerCount {
  std::uint64_t live = 0, uncertain = 0;
};
struct Done {};

}  // namespace answer

using Answer =
    std::variant<Decision, answer::Found, answer::FoundProfile, answer::AuditRows, answer::Moved,
                 answer::Page, answer::Stats, answer::Names, answer::CallerCount, answer::Done>;

/// One request on its way through a store. The submitter owns it and keeps it alive until
/// `completed`.
class Command {
 public:
  explicit Command(Request request) : request_(std::move(request)) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  /// Called exactly once, on a thread of the store (or inside `submit`). Must not block; may
  /// destroy `this`. An error of code in_doubt: the step may have become durable; repeat it with
  /// the same owner, or read.
  virtual void completed(Result<Answer> answer) noexcept = 0;

  const Request& request() const { return request_; }
  Request& request() { return request_; }

  Command* next_in_batch = nullptr;  ///< The store's, between submit and completed.

 private:
  Request request_;
};

/// What a backend can and cannot do. A need that is not declared is refused at construction, never
/// faked.
struct Capabilities {
  std::string name;     ///< "memory", "sqlite", "postgres"
  bool durable = true;  ///< Survives the process.
  bool shared_between_processes = false;
  bool shared_between_machines = false;
  bool same_transaction = false;   ///< Offers a Session on the caller's own handle.
  bool announces_changes = false;  ///< `on_foreign_change` fires without polling.
};

/// What a store does, for metrics. Called on a store thread; must not block or throw.
class StoreObserver {
 public:
  virtual ~StoreObserver() = default;
  /// `commands` were made durable together; `took` is the time from the begin of the batch's
  /// transaction to the confirmed commit.
  virtual void committed(std::size_t /*commands*/, Duration /*took*/) noexcept {}
};

/// A durable home of records. `submit` is thread-safe and does not block.
class Store {
 public:
  virtual ~Store() = default;
  virtual const Capabilities& capabilities() const = 0;
  virtual void submit(Command& command) = 0;

  /// 32 random bytes kept in the store: the key under which logs show scopes as digests.
  virtual const Bytes& digest_secret() const = 0;

  /// Calls `listener` (from a store thread) when another process may have changed records; at most
  /// every few milliseconds while something is awaited. A hint: polling is the truth. One listener;
  /// empty removes it.
  virtual void on_foreign_change(std::function<void()> listener) = 0;
  /// Whether somebody waits for foreign changes now: a driver that must poll for them polls only
  /// then.
  virtual void await_foreign_changes(bool wanted) = 0;

  /// One observer, which must outlive the store or be removed (null) while no command is submitted.
  /// A store without batches reports nothing.
  virtual void observe(StoreObserver* /*observer*/) {}
};

/// Submits and waits. For command lines and tests; never on a thread the store itself needs.
Result<Answer> ask(Store& store, Request request);

/// `ask` for a Transition, unpacked.
Result<Decision> ask_transition(Store& store, request::Transition transition);

}  // namespace einmal
