#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "einmal/testing/http_message.hpp"
#include "einmal/testing/socket.hpp"

namespace einmal::test {

/// Holds something up until a test lets it go on. Thread-safe; once open it stays open.
class Gate {
 public:
  void open();
  /// Waits until it is open or `give_up` says true (asked every few milliseconds).
  void wait(const std::function<bool()>& give_up);

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

/// What the upstream does with one request, step by step.
class Play {
 public:
  /// Reads the whole request first (the ordinary case).
  Play() = default;
  /// Reads at least one and about `bytes` bytes of the request, then goes through the steps.
  static Play after_reading_only(std::size_t bytes);

  Play& send(std::string bytes);
  /// A whole answer with Content-Length.
  Play& answer(int status, std::string body = {}, HeaderList headers = {});
  Play& wait(std::shared_ptr<Gate> gate);
  /// Lets so much time pass.
  Play& take(Milliseconds time);
  Play& close();
  Play& reset();
  /// Does nothing more until the peer goes or the upstream ends.
  Play& stall();

 private:
  friend class ScriptedUpstream;
  enum class Ending : std::uint8_t { close, reset, stall };
  using Step = std::variant<std::string, std::shared_ptr<Gate>, Milliseconds, Ending>;
  std::optional<std::size_t> only_bytes_;
  std::vector<Step> steps_;
};

/// A real HTTP server on a loopback port whose behaviour is set out of band, so that the bytes of a
/// request never change between attempts. Counts complete requests: the effects of a test. After a
/// play without an ending the connection stays open. Thread-safe.
class ScriptedUpstream {
 public:
  /// Answers 201 with a body that counts up, until told otherwise.
  ScriptedUpstream();
  ~ScriptedUpstream();
  ScriptedUpstream(const ScriptedUpstream&) = delete;
  ScriptedUpstream& operator=(const ScriptedUpstream&) = delete;

  std::uint16_t port() const { return listener_.port(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

  /// For every request from now on. The number is that of the complete request, from 1.
  using Decide = std::function<Play(const HttpRequest&, std::size_t number)>;
  void always(Decide decide);
  void always(Play play);
  /// For the next request that begins; may be called several times, and comes before `always`.
  void next(Play play);

  /// Complete requests, in the order in which they became complete.
  std::vector<HttpRequest> requests() const;
  std::size_t count() const;
  /// Complete requests that carried this key, bare or quoted: effects(K).
  std::size_t effects(std::string_view key) const;
  /// Requests of which at least one byte came.
  std::size_t begun() const;
  /// Connections accepted so far.
  std::size_t connections() const;
  /// Waits until `n` requests are complete.
  bool wait_for(std::size_t n) const;

 private:
  struct Connection;
  void accept_connections();
  void serve(Connection& connection);
  bool perform(Connection& connection, const Play& play);
  std::optional<Play> take_next();

  Listener listener_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Decide decide_;
  std::deque<Play> next_;
  std::vector<HttpRequest> requests_;
  std::size_t begun_ = 0;
  std::size_t connections_ = 0;
  bool stopping_ = false;
  std::list<Connection> open_;
  std::thread acceptor_;
};

}  // namespace einmal::test
