#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/statements.hpp"

namespace einmal::postgres {

/// The pace of connections; what is decided is decided by the server's clock.
using Pace = std::chrono::steady_clock;

/// Statements that a lane runs as one transaction.
class Errand {
 public:
  explicit Errand(std::vector<Statement> statements, bool durable)
      : statements_(std::move(statements)), durable_(durable) {}
  virtual ~Errand() = default;

  const std::vector<Statement>& statements() const { return statements_; }
  /// Whether it runs between BEGIN and a COMMIT that must be confirmed. Otherwise (it only reads)
  /// the sync point ends it and its rows are the end of it. Last in its train, since a failed one
  /// leaves the session in a failed transaction until that is rolled back.
  bool durable() const { return durable_; }

  /// The rows of one statement have come; nothing is confirmed.
  virtual void rows(std::size_t statement, const pg_result* result) = 0;
  /// The end, one of these, once: COMMIT was confirmed (or, of a reading one, all rows came) ...
  virtual void done() = 0;
  /// ... or it failed. `in_doubt`: the connection was lost with COMMIT under way; otherwise nothing
  /// was changed. `sqlstate` is empty when the connection was lost.
  virtual void failed(Error error, const std::string& sqlstate, bool in_doubt) = 0;

 private:
  std::vector<Statement> statements_;
  bool durable_;
};

struct LaneOptions {
  std::string conninfo;
  Duration statement_timeout{};
  /// Statements of the session, run once after connecting where the session is ours alone.
  std::vector<std::string> session;
  bool pooled = false;  ///< Behind a pooler that hands sessions around: no session state.
};

/// One connection in pipeline mode: connects, sends trains of errands, reads what comes back,
/// reconnects with growing pauses. Never blocks. One thread.
class Lane {
 public:
  enum class State : std::uint8_t { offline, connecting, setting_up, idle, busy, rolling_back };

  Lane(LaneOptions options, Random& random);
  ~Lane();

  State state() const { return state_; }
  /// Sends `train`. Only when idle.
  void run(std::vector<std::unique_ptr<Errand>> train);

  int descriptor() const;  ///< -1: nothing to wait for but the deadline.
  bool wants_write() const;
  /// When to call `step` though the descriptor is silent; nothing: never.
  std::optional<Pace::time_point> deadline() const;
  /// The descriptor is ready, or the deadline is here, or whenever in doubt.
  void step();

  /// Why the last attempt to connect failed.
  const Error& last_error() const { return last_error_; }
  /// Called for each NOTIFY that arrives: channel, payload.
  std::function<void(const std::string&, const std::string&)> on_notify;
  /// Closes; fails what is under way.
  void close(Error why);

 private:
  /// One result that the server owes us.
  struct Owed {
    enum class Kind : std::uint8_t { begin, prepare, rows, commit, sync };
    Kind kind = Kind::sync;
    std::size_t errand = 0;
    std::size_t statement = 0;
  };
  struct Progress {
    std::optional<Error> error;
    std::string sqlstate;
    bool ended = false;
  };

  void start_connecting();
  void go_on_connecting();
  void set_up();
  void send_session();
  void finish_setup();
  bool send_errand(std::size_t index);
  bool send_statement(std::size_t index, std::size_t at);
  bool send(const char* sql);
  bool prepare(const Statement& statement);
  bool sync(std::size_t errand);
  void read();
  void take(const pg_result* result);
  void take_of_errand(const Owed& owed, const pg_result* result);
  void end_errand(std::size_t index);
  void end_train();
  void lose(const char* what);
  void fail_train(const Error& error);
  void arrive_at(State state);

  LaneOptions options_;
  Random& random_;
  State state_ = State::offline;
  ConnectionHandle connection_;
  int polling_ = 0;
  std::set<std::string> prepared_;
  std::vector<std::unique_ptr<Errand>> train_;
  std::vector<Progress> progress_;
  std::deque<Owed> owed_;
  std::size_t session_sent_ = 0;
  bool stale_ = false;   ///< The session's prepared statements no longer fit the schema.
  bool unsent_ = false;  ///< Bytes wait for room in the socket.
  int attempts_ = 0;     ///< To connect, without success.
  Pace::time_point deadline_{};
  Error last_error_{ErrorCode::unavailable, "postgres: no connection yet"};
};

}  // namespace einmal::postgres
