#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "einmal/postgres/lane.hpp"
#include "einmal/postgres/news.hpp"
#include "einmal/postgres/postgres_store.hpp"
#include "einmal/postgres/server_traits.hpp"

namespace einmal::postgres {

/// The thread of the store: takes what is submitted, hands it to free lanes, answers. All members
/// but `submit`, `stop` and the listener's are the thread's own.
class Dispatcher {
 public:
  Dispatcher(const std::string& conninfo, const PostgresStoreOptions& options, ServerTraits traits,
             const Clock& clock, Random& random);
  ~Dispatcher();

  void submit(Command& command);
  void on_foreign_change(std::function<void()> listener) { news_.on_change(std::move(listener)); }
  void await_foreign_changes(bool wanted);
  void observe(StoreObserver* observer) { observer_ = observer; }

 private:
  class Batch;
  class Single;

  /// A command that waits for a lane.
  struct Waiting {
    Command* command = nullptr;
    Pace::time_point since{};       ///< Submitted.
    Pace::time_point not_before{};  ///< Its scope was held; look again then.
    int tries = 0;
    bool alone =
        false;  ///< Its batch failed: it goes by itself, so that only the guilty one fails.
  };
  using Queue = std::deque<Waiting>;

  void run();
  void sleep();
  void take_submitted();
  void give_work();
  bool fast_lanes_are_down() const;
  void refuse_what_waited_too_long();
  void refuse(Queue& queue, const Error& why);
  std::unique_ptr<Errand> next_batch();
  std::vector<std::unique_ptr<Errand>> next_train();
  bool give_single(Lane& lane, Queue& queue);
  bool finished() const;

  Queue& queue_of(const Command& command);
  Machine machine() const { return {clock_.boot_id(), clock_.boot_now()}; }
  void answer(const Waiting& waiting, Result<Answer> result);
  void again_later(Waiting waiting);
  void held_too_long(const Waiting& waiting, std::optional<Record> record);
  void batch_failed(std::vector<Waiting> members, const Error& error, const std::string& sqlstate,
                    bool in_doubt);
  void committed(std::size_t commands, Pace::time_point begun, bool changed_for_waiters);
  void learn(const Waiting& waiting, const Decision& decision);

  const PostgresStoreOptions options_;
  const Clock& clock_;
  std::atomic<StoreObserver*> observer_ = nullptr;

  std::mutex mutex_;  // guards the next three
  std::vector<Command*> submitted_;
  bool stopping_ = false;
  bool asleep_ = false;

  int wake_descriptor_ = -1;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Lane> slow_lane_;
  News news_;
  Queue batched_, reads_, slow_;
  std::set<Digest> known_profiles_;
  Pace::time_point looked_;  ///< When the queues were gone through last.
  bool last_call_ = false;
  std::thread thread_;
};

}  // namespace einmal::postgres
