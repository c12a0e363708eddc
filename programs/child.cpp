#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

namespace einmal::programs {

namespace {

constexpr int start_limit_ms = 20'000;

std::string last_line_of(const std::string& file) {
  std::ifstream in(file);
  std::string line, last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "it said nothing" : last;
}

/// What follows "listening on " in the output, or empty if it ended (or took too long) before.
std::string read_url(int output) {
  constexpr std::string_view announcement = "listening on ";
  std::string text;
  std::array<char, 512> buffer{};
  while (true) {
    const auto start = text.find(announcement);
    const auto end = start == std::string::npos ? start : text.find('\n', start);
    if (end != std::string::npos) {
      const auto from = start + announcement.size();
      return text.substr(from, end - from);
    }
    pollfd watched{output, POLLIN, 0};
    if (::poll(&watched, 1, start_limit_ms) <= 0) return {};
    const auto got = ::read(output, buffer.data(), buffer.size());
    if (got <= 0) return {};
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& arguments, const std::string& log_file) {
  std::vector<std::string> words{"/proc/self/exe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<int, 2> output{};
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0 || ::pipe2(output.data(), O_CLOEXEC) != 0)
    return failure(ErrorCode::unavailable, "cannot start einmal " + arguments.front());

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {  // Only async-signal-safe calls from here on.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(output[1]);
  ::close(log);
  Child child(pid, output[0]);
  if (pid > 0) child.url_ = read_url(output[0]);
  if (child.url_.empty()) {
    child.kill();
    return failure(ErrorCode::unavailable,
                   "einmal " + arguments.front() + " did not start: " + last_line_of(log_file));
  }
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      url_(std::move(other.url_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(output_, other.output_);
  std::swap(url_, other.url_);
  return *this;
}

Child::~Child() {
  kill();
  if (output_ >= 0) ::close(output_);
}

void Child::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

}  // namespace einmal::programs
