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

/// A workflow as it is kept. `generation` and `owner` are those under which its record was claimed;
/// none (0, nil) for one that was staged.
struct WorkflowRow {
  OperationId id;
  Scope scope;
  std::string definition;
  std::string name;  ///< Empty unless staged.
  Bytes input;
  Bytes journal;
  std::uint64_t fence = 0;  ///< Counts the picks.
  bool stopped = false;
  Generation generation{};
  OwnerToken owner;
  friend bool operator==(const WorkflowRow&, const WorkflowRow&) = default;
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

/// Workflows (einmal/workflow): operations of several steps. Needs the capability `workflows`. What
/// they are made of is opaque here: a row holds the intent, a journal that only grows, and when
/// somebody may next work on it. Every time is the store's; a row whose lease or delay is of
/// another boot is due.

/// Claims an operation and, in the same atomic step, keeps the intent if the claim executes: a row
/// named by the record's operation id, due at once. The claim has no lease; what an owner holds is
/// the row, and only Advance settles the record.
struct StartWorkflow {
  Scope scope;
  event::Claim claim;
  std::shared_ptr<const Profile> profile;
  std::string definition;  ///< Name and version of what the journal means, e.g. "refund/2".
  Bytes input;
};
/// Leases up to `limit` rows of these definitions that are due and not stopped, longest due first:
/// nobody else gets them before the lease is over. Answered in the order of their ids.
struct PickWorkflows {
  OwnerToken worker;  ///< Drawn by the one who picks.
  Duration lease{};
  std::vector<std::string> definitions;
  std::size_t limit = 1;
};
/// Another piece of work that is to be done once this step is durable, with a row of its own and no
/// record.
struct StagedWorkflow {
  OperationId id;  ///< Drawn by the one who stages it.
  std::string definition;
  std::string name;  ///< What its derived keys are computed under, beside the same scope.
  Bytes input;
};
/// What becomes of the row, and of its record.
struct HoldWorkflow {
  Duration lease{};  ///< From now.
};
struct DelayWorkflow {
  Duration delay{};  ///< From now; anybody may pick it then.
};
/// Nobody picks it until ResumeWorkflow. Its record becomes uncertain.
struct StopWorkflow {};
/// The row is removed; its record, if it has one, is settled.
struct FinishWorkflow {
  event::Final outcome = event::Final::completed;
  StoredResult result;
};
/// The row is removed and its record released: nothing of the operation had an effect.
struct ReleaseWorkflow {};
using WorkflowNext =
    std::variant<HoldWorkflow, DelayWorkflow, StopWorkflow, FinishWorkflow, ReleaseWorkflow>;

/// One step of the one who holds a row, as one atomic step: appends to the journal, stages, and
/// does what comes next. Refused, with nothing changed, unless `worker` and `fence` are those of
/// the row's last pick and the row is not stopped.
struct AdvanceWorkflow {
  OperationId id;
  OwnerToken worker;
  std::uint64_t fence = 0;
  Bytes append;
  std::vector<StagedWorkflow> staged;
  WorkflowNext next;
};
struct ReadWorkflow {
  OperationId id;
};
/// Somebody who looked into it appends to the journal of a stopped row and makes it due. Refused
/// unless it is stopped and `fence` is the one that was looked at. A row whose record was settled
/// meanwhile is removed instead (superseded).
struct ResumeWorkflow {
  OperationId id;
  std::uint64_t fence = 0;
  Bytes append;
};
/// How many rows there are of each definition, in ascending byte order.
struct CountWorkflows {};

}  // namespace request

using Request =
    std::variant<request::Transition, request::ReadScope, request::ReadOperation,
                 request::ReadProfile, request::ReadAudit, request::Overdue, request::Sweep,
                 request::List, request::Stats, request::LiveOperations, request::CountCaller,
                 request::AdvanceGenerations, request::AcceptTime, request::StartWorkflow,
                 request::PickWorkflows, request::AdvanceWorkflow, request::ReadWorkflow,
                 request::ResumeWorkflow, request::CountWorkflows>;

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
/// PickWorkflows, ReadWorkflow (at most one).
struct Workflows {
  std::vector<WorkflowRow> rows;
};
/// AdvanceWorkflow, ResumeWorkflow.
enum class Advanced : std::uint8_t {
  done = 1,
  lost = 2,        ///< Refused: somebody else holds the row, it is stopped, or it is gone.
  superseded = 3,  ///< Somebody else had settled the record: theirs stands, the row is gone.
};
struct WorkflowCounts {
  struct OfDefinition {
    std::string definition;
    std::uint64_t rows = 0;  ///< All of them.
    std::uint64_t due = 0, stopped = 0;
    friend bool operator==(const OfDefinition&, const OfDefinition&) = default;
  };
  std::vector<OfDefinition> definitions;
};

}  // namespace answer

using Answer =
    std::variant<Decision, answer::Found, answer::FoundProfile, answer::AuditRows, answer::Moved,
                 answer::Page, answer::Stats, answer::Names, answer::CallerCount, answer::Done,
                 answer::Workflows, answer::Advanced, answer::WorkflowCounts>;

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
  bool workflows = false;          ///< Keeps the rows of workflows.
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
