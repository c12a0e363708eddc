#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "einmal/base/error.hpp"

namespace einmal::programs {

/// A server started as a child: another process of this same binary. Killed when this object goes
/// and when this process ends.
class Child {
 public:
  /// Starts `einmal ARGUMENTS...` and waits until it prints "listening on URL". What it writes to
  /// standard error is appended to `log_file`. Errors: unavailable, with what the log says last.
  static Result<Child> start(const std::vector<std::string>& arguments,
                             const std::string& log_file);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  const std::string& url() const { return url_; }
  pid_t pid() const { return pid_; }
  /// SIGKILL: no goodbye, no flush.
  void kill();

 private:
  Child(pid_t pid, int output) : pid_(pid), output_(output) {}
  pid_t pid_ = -1;
  int output_ = -1;  ///< Kept open, so that a later line does not end the child by SIGPIPE.
  std::string url_;
};

}  // namespace einmal::programs
