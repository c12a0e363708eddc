#include "einmal/testing/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

extern char** environ;

namespace einmal::test {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (auto& each : strings) all.push_back(each.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> merged_environment(const ChildProcess::Environment& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view line(*entry);
    bool replaced = false;
    for (const auto& [name, value] : added) replaced |= line.starts_with(name + "=");
    if (!replaced) all.emplace_back(line);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

/// The state letter of /proc/PID/stat: it follows the name, which may hold anything but ends in
/// ")".
char state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const auto end = line.rfind(')');
  return end == std::string::npos || end + 2 >= line.size() ? '?' : line[end + 2];
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments, Environment environment) {
  std::array<int, 2> output{}, errors{};
  if (::pipe2(output.data(), O_CLOEXEC) != 0 || ::pipe2(errors.data(), O_CLOEXEC) != 0)
    fail("pipe");
  auto merged = merged_environment(environment);
  const auto argv = pointers(arguments);
  const auto envp = pointers(merged);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) {  // Only async-signal-safe calls from here on.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(errors[1], STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(output[1]);
  ::close(errors[1]);
  output_reader_ = std::thread([this, fd = output[0]] { collect(fd, output_); });
  error_reader_ = std::thread([this, fd = errors[0]] { collect(fd, errors_); });
}

ChildProcess::~ChildProcess() {
  kill();
  output_reader_.join();
  error_reader_.join();
}

void ChildProcess::collect(int descriptor, std::string& into) {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    const std::lock_guard lock(mutex_);
    if (got <= 0) {
      (&into == &output_ ? output_ended_ : errors_ended_) = true;
      changed_.notify_all();
      break;
    }
    into.append(buffer.data(), static_cast<std::size_t>(got));
    changed_.notify_all();
  }
  ::close(descriptor);
}

std::optional<std::string> ChildProcess::wait_for_line(std::string_view part, Milliseconds wait) {
  std::optional<std::string> found;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, wait, [&] {
    const auto at = output_.find(part);
    const auto end = at == std::string::npos ? at : output_.find('\n', at);
    if (end == std::string::npos) return output_ended_;
    const auto before = output_.rfind('\n', at);
    const auto start = before == std::string::npos ? 0 : before + 1;
    found = output_.substr(start, end - start);
    return true;
  });
  return found;
}

void ChildProcess::wait_for_output_end() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return output_ended_ && errors_ended_; });
}

std::string ChildProcess::output() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

std::string ChildProcess::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

void ChildProcess::signal(int number) const {
  if (!exit_) ::kill(pid_, number);
}

void ChildProcess::kill() {
  if (exit_) return;
  ::kill(pid_, SIGKILL);
  wait_for_exit();
}

void ChildProcess::stop() {
  signal(SIGSTOP);
  if (!eventually([this] { return is_stopped(); })) fail("SIGSTOP");
}

void ChildProcess::resume() { signal(SIGCONT); }

bool ChildProcess::is_stopped() const { return state_of(pid_) == 'T'; }

bool ChildProcess::is_running() { return !wait_for_exit(Milliseconds(0)); }

std::optional<Exit> ChildProcess::wait_for_exit(Milliseconds wait) {
  eventually(
      [this] {
        int status = 0;
        if (!exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
          exit_ = WIFSIGNALED(status) ? Exit{-1, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
        }
        return exit_.has_value();
      },
      wait);
  return exit_;
}

TempDir::TempDir() {
  auto name = (std::filesystem::temp_directory_path() / "einmal-test-XXXXXX").string();
  if (!::mkdtemp(name.data())) fail("mkdtemp");
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string sibling_program(std::string_view name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

}  // namespace einmal::test
