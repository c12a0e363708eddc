#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "einmal/testing/socket.hpp"

namespace einmal::test {

/// How a process ended.
struct Exit {
  int status = 0;  ///< Of exit(); -1 when a signal ended it.
  int signal = 0;
  friend bool operator==(const Exit&, const Exit&) = default;
};

/// A real child process. Its output is collected; it is killed with -9 and reaped when this object
/// goes, and by the kernel when the test process goes. Create it on a thread that lives as long.
class ChildProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// `arguments[0]` is the program's path. `environment` is added to that of this process.
  explicit ChildProcess(std::vector<std::string> arguments, Environment environment = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  /// The first line of standard output that contains `part`; nothing if the output ended or
  /// `patience` is over before it came.
  std::optional<std::string> wait_for_line(std::string_view part, Milliseconds wait = patience);
  /// Waits until both of its outputs are at their end: after its exit everything has been read.
  void wait_for_output_end();
  /// What it has written so far.
  std::string output() const;
  std::string errors() const;

  void signal(int number) const;
  void kill();  ///< SIGKILL, and waits until it is gone.
  void stop();  ///< SIGSTOP, and waits until it stands still.
  void resume();
  /// Whether it has stopped itself or was stopped (state T).
  bool is_stopped() const;
  bool is_running();
  /// Nothing when it still runs after `wait`.
  std::optional<Exit> wait_for_exit(Milliseconds wait = patience);

 private:
  void collect(int descriptor, std::string& into);

  pid_t pid_ = -1;
  std::optional<Exit> exit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_, errors_;
  bool output_ended_ = false, errors_ended_ = false;
  std::thread output_reader_, error_reader_;
};

/// A fresh directory, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// The directory of the running test program: its sibling programs are there.
std::string sibling_program(std::string_view name);

}  // namespace einmal::test
