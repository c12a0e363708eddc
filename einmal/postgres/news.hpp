#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "einmal/postgres/lane.hpp"

namespace einmal::postgres {

/// Tells other processes that records changed, and hears it from them, by LISTEN and NOTIFY on a
/// connection of its own. A process whose callers wait says so once a second; only while somebody
/// has said so does a commit send its one message, afterwards, without waiting for a flush.
/// A hint: whoever waits is also told every half second (every 50 ms where LISTEN does not work).
///
/// The thread of the store, but `on_change` and `wanted`, which are thread-safe.
class News {
 public:
  /// Without `announces` it only polls and needs no connection.
  News(const LaneOptions& options, bool announces, Random& random);

  void on_change(std::function<void()> listener);
  void wanted(bool wanted);

  /// Something that others may wait for was committed here.
  void committed() { unsaid_ = true; }

  /// The connection; null without one.
  Lane* lane() const { return lane_.get(); }
  /// When `step` has something to do though nothing arrived; nothing: never.
  std::optional<Pace::time_point> deadline() const;
  void step();

  /// The statements that make a session listen.
  static std::vector<std::string> session();

 private:
  void heard(const std::string& channel, const std::string& payload);
  void tell_listener(Pace::time_point now);
  void say(const char* channel);

  const std::string self_;  ///< Tells our own messages from others'.
  std::unique_ptr<Lane> lane_;
  Pace::duration poll_interval_;

  std::mutex listener_mutex_;  // held while the listener runs: once removed, it never runs again
  std::function<void()> listener_;
  std::atomic<bool> wanted_ = false;

  bool unsaid_ = false;
  bool changed_elsewhere_ = false;
  Pace::time_point others_wait_until_{};
  Pace::time_point last_said_{}, last_waiting_said_{}, last_told_{};
};

}  // namespace einmal::postgres
