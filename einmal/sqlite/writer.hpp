#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "einmal/sqlite/checkpointer.hpp"
#include "einmal/sqlite/intake.hpp"
#include "einmal/sqlite/open_records.hpp"
#include "einmal/sqlite/reader.hpp"
#include "einmal/sqlite/store_clock.hpp"
#include "einmal/sqlite/store_file.hpp"

namespace einmal::sqlite {

/// The only thread of a process that writes: commits together whatever waits. Every command is
/// decided by core `decide` inside the transaction, and answered after its COMMIT.
class Writer {
 public:
  Writer(OpenFile how, std::unique_ptr<StoreFile> file, const ScopeDigests& digests,
         StoreClock& clock, Random& random, Intake& intake, Reader& reader,
         Checkpointer& checkpointer);

  /// Until the intake stops and everything is answered.
  void run();

  /// Any thread.
  void observe(StoreObserver* observer) { observer_.store(observer); }
  void await_foreign_changes(bool wanted);
  void on_foreign_change(std::function<void()> listener);

 private:
  struct Item {
    Command* command = nullptr;
    std::int64_t digest = 0;
    std::optional<Row> row;  ///< Looked up before the transaction.
    Result<Answer> answer = Answer(answer::Done{});
  };
  using Items = std::span<Item>;

  void round(Intake::Work& work);
  void look_up_claims();
  void commit(Items items);
  void commit_halves(Items items);
  Result<void> run_transaction(Items items);
  Result<void> commit_transaction(Items items);
  void answer(Items items);
  void answer_all(Items items, const Error& error);

  Result<void> begin();
  Result<void> notice_foreign_changes(Items items);
  Result<void> end(bool clock_too);
  void leave();
  bool clock_pauses_otherwise() const;
  Result<void> keep_clock();

  Result<Answer> execute(Item& item);
  Result<Answer> on(Item& item, request::Transition& transition);
  Result<Answer> on(const request::Overdue& overdue);
  Result<Answer> on(const request::Sweep& sweep);
  Result<Answer> on(const request::AdvanceGenerations& advance);
  Result<Answer> on(const request::AcceptTime& accept);
  Result<Answer> on_workflow(Item& item);
  Result<Answer> on(Item& item, const request::StartWorkflow& start);
  Result<Answer> on(const request::PickWorkflows& pick);
  Result<Answer> on(Item& item, const request::AdvanceWorkflow& advance);
  Result<Answer> on(Item& item, const request::ResumeWorkflow& resume);
  Result<Answer> written(Result<void> done, Answer answer);
  Result<Answer> note_of_the_store(AuditEvent event, const Actor& actor);
  Result<void> apply(Row& row, std::int64_t digest, const Scope& scope, Step& step,
                     const Actor& actor);
  Result<bool> patrol();
  Result<void> attend_to(std::int64_t id, const Event& event, answer::Moved& moved);

  Result<void> find_row(Item& item, const Scope& scope);
  void remember(Item& item, const Scope& scope);
  void rolled_back();

  void tend_wal();
  bool ensure_open();
  void recover(Items items, const Error& doubt);
  Result<bool> read_back();
  void yield_to_others();
  void poll_foreign_changes();
  void announce_foreign_change();

  OpenFile how_;
  std::unique_ptr<StoreFile> file_;
  const ScopeDigests& digests_;
  StoreClock& clock_;
  Random& random_;
  Intake& intake_;
  Reader& reader_;
  Checkpointer& checkpointer_;

  std::vector<Item> items_;
  OpenRecords open_records_;
  std::unordered_set<std::int64_t> touched_;  ///< Scopes written in this transaction.
  Now now_{};
  bool wrote_ = false;
  bool broken_ = false;  ///< A write failed: the transaction must be rolled back.
  Error open_error_;

  std::int64_t id_ = 0;     ///< Of this writer's row.
  std::int64_t batch_ = 0;  ///< Counts transactions.
  std::int64_t data_version_ = -1;
  std::int64_t generation_ = 0;  ///< The last handed out, as of this transaction.
  std::int64_t committed_generation_ = 0;
  std::int64_t highest_generation_ = 0;  ///< Ever seen by this process.
  ClockGuard::State kept_clock_;         ///< As the file has it.
  ClockGuard::State written_clock_;      ///< As it will once this transaction is committed.
  BootTime foreign_activity_{};          ///< When another process was last seen to commit.
  bool seen_foreign_ = false;
  bool restarted_wal_ = false;

  std::atomic<StoreObserver*> observer_{nullptr};
  std::atomic<bool> awaited_{false};
  std::mutex listener_mutex_;
  std::function<void()> listener_;
};

}  // namespace einmal::sqlite
