#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "einmal/testing/process.hpp"

namespace einmal::test {

/// How to start a throw-away server.
struct PostgresOptions {
  /// Off: the machine may lose what the server acknowledged, a killed server process may not. What
  /// tests of kill -9 need and what makes a commit cheap. On: what an operator runs.
  bool fsync = false;
  /// Further lines of postgresql.conf, as name and value (quoted by us).
  std::vector<std::pair<std::string, std::string>> settings;
};

/// A PostgreSQL server of the test's own: initdb in a temporary folder, a Unix socket inside it, no
/// TCP port. As root it runs as the user `postgres`, since PostgreSQL refuses root; trust
/// authentication, superuser `postgres`, locale C, UTF-8. Gone, with its folder, when destroyed;
/// the server also ends when the thread that started it does. Not thread-safe.
class PostgresServer {
 public:
  /// Makes the cluster and starts the server; returns when it accepts connections. Throws
  /// std::runtime_error with the server's log when it does not in time.
  explicit PostgresServer(PostgresOptions options = {});
  /// A streaming replica of `primary`, which must run, called `name` in its
  /// synchronous_standby_names. Returns when it accepts connections.
  PostgresServer(const PostgresServer& primary, const std::string& name);
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  /// A libpq connection string.
  std::string conninfo(const std::string& database = "postgres",
                       const std::string& user = "postgres") const;
  /// The folder of the Unix socket: libpq's `host`.
  std::string socket_folder() const { return folder_.path().string(); }
  /// The port that names the socket: libpq's `port`.
  static constexpr int port = 5432;
  /// The socket itself, for a TcpGate before it.
  std::string socket_path() const { return folder_.file(".s.PGSQL." + std::to_string(port)); }
  std::string data_folder() const { return folder_.file("data"); }
  /// What the server logged so far.
  std::string log() const;

  /// Clean shutdown: open connections are cut, everything is written.
  void stop();
  /// SIGKILL to the server and every process of it at the same moment: what a crash of the machine
  /// leaves, less what fsync = false allows to be lost.
  void kill();
  /// Starts it again after stop or kill (crash recovery included). Settings stay as they were.
  void start();
  /// Sets lines of postgresql.conf and restarts.
  void restart_with(const std::vector<std::pair<std::string, std::string>>& settings);
  /// A replica that becomes a primary; returns when it is one.
  void promote();
  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }

 private:
  void own_folder() const;
  void append_settings(const std::vector<std::pair<std::string, std::string>>& settings);
  TempDir folder_;
  pid_t pid_ = -1;
};

}  // namespace einmal::test
