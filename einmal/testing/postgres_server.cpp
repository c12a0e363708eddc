#include "einmal/testing/postgres_server.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace einmal::test {

namespace {

namespace fs = std::filesystem;

struct Account {
  uid_t uid = geteuid();
  gid_t gid = getegid();
  bool other = false;  ///< Not the one that runs this process.
};

Account server_account() {
  Account account;
  if (geteuid() != 0) return account;
  const passwd* entry = getpwnam("postgres");
  if (!entry) throw std::runtime_error("postgres_server: running as root and no user 'postgres'");
  return {entry->pw_uid, entry->pw_gid, true};
}

std::string program(std::string_view name) {
  for (const char* version : {"15", "16", "17", "14"}) {
    fs::path path = fs::path("/usr/lib/postgresql") / version / "bin" / name;
    if (fs::exists(path)) return path;
  }
  throw std::runtime_error("postgres_server: no " + std::string(name) +
                           " below /usr/lib/postgresql; install postgresql");
}

std::string whole_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Runs `arguments` as the server's account with its output in `log`. Between fork and exec only
/// what is safe beside other threads.
pid_t spawn(const std::vector<std::string>& arguments, const std::string& log) {
  const Account account = server_account();
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (out < 0) throw std::runtime_error("postgres_server: cannot write " + log);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out, 1);
    dup2(out, 2);
    const bool became = !account.other || (setgroups(0, nullptr) == 0 && setgid(account.gid) == 0 &&
                                           setuid(account.uid) == 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    setpgid(0, 0);  // Ctrl-C at the terminal is for the test, which then stops us
    prctl(PR_SET_PDEATHSIG, SIGQUIT);  // after setuid, which clears it
    if (became && chdir("/") == 0) execv(argv[0], argv.data());
    _exit(127);
  }
  close(out);
  if (pid < 0) throw std::runtime_error("postgres_server: fork failed");
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool gone(pid_t pid) {
  const std::string stat = whole_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.substr(name_end, 3) == ") Z";
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string self = std::to_string(pid);
  std::istringstream in(whole_file("/proc/" + self + "/task/" + self + "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; in >> child;) children.push_back(child);
  return children;
}

std::string config_value(std::string_view value) {
  std::string out = "'";
  for (const char c : value) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

}  // namespace

/// The server's account writes there.
void PostgresServer::own_folder() const {
  const Account account = server_account();
  if (chown(socket_folder().c_str(), account.uid, account.gid) != 0)
    throw std::runtime_error("postgres_server: chown " + socket_folder() + " failed");
}

PostgresServer::PostgresServer(const PostgresServer& primary, const std::string& name) {
  own_folder();
  const pid_t backup = spawn({program("pg_basebackup"), "--pgdata=" + data_folder(),
                              "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
                              "--dbname=" + primary.conninfo() + " application_name=" + name},
                             folder_.file("log"));
  if (const int status = wait_for(backup); status != 0)
    throw std::runtime_error("postgres_server: pg_basebackup failed: " + log());
  append_settings({{"unix_socket_directories", socket_folder()},
                   {"synchronous_standby_names", ""},
                   {"hot_standby", "on"}});
  start();
}

void PostgresServer::promote() {
  const pid_t promotion = spawn(
      {program("pg_ctl"), "promote", "--wait", "--pgdata=" + data_folder()}, folder_.file("log"));
  if (const int status = wait_for(promotion); status != 0)
    throw std::runtime_error("postgres_server: promotion failed: " + log());
}

PostgresServer::PostgresServer(PostgresOptions options) {
  own_folder();

  const pid_t initdb =
      spawn({program("initdb"), "--pgdata=" + data_folder(), "--username=postgres", "--auth=trust",
             "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"},
            folder_.file("log"));
  if (const int status = wait_for(initdb); status != 0)
    throw std::runtime_error("postgres_server: initdb failed: " + log());

  append_settings({{"listen_addresses", ""},
                   {"unix_socket_directories", socket_folder()},
                   {"port", std::to_string(port)},
                   {"fsync", options.fsync ? "on" : "off"},
                   {"shared_buffers", "32MB"},
                   {"max_connections", "100"},
                   {"log_min_messages", "warning"}});
  append_settings(options.settings);
  start();
}

PostgresServer::~PostgresServer() {
  try {
    if (running()) kill();
  } catch (const std::exception&) {  // a server that will not die must not end the test run
  }
}

std::string PostgresServer::conninfo(const std::string& database, const std::string& user) const {
  return "host=" + socket_folder() + " port=" + std::to_string(port) + " dbname=" + database +
         " user=" + user;
}

std::string PostgresServer::log() const { return whole_file(folder_.file("log")); }

void PostgresServer::append_settings(
    const std::vector<std::pair<std::string, std::string>>& settings) {
  std::ofstream out(data_folder() + "/postgresql.conf", std::ios::app);
  for (const auto& [name, value] : settings) out << name << " = " << config_value(value) << '\n';
}

void PostgresServer::start() {
  // After kill the old file stays; a new server refuses nothing for it, but we would read it.
  const fs::path pid_file = data_folder() + "/postmaster.pid";
  std::error_code ignored;
  fs::remove(pid_file, ignored);
  pid_ = spawn({program("postgres"), "-D", data_folder()}, folder_.file("log"));
  const bool ready = eventually([&] {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error("postgres_server: the server ended: " + log());
    }
    return whole_file(pid_file).find("\nready") != std::string::npos;  // its eighth line
  });
  if (!ready) throw std::runtime_error("postgres_server: not ready in time: " + log());
}

void PostgresServer::stop() {
  if (!running()) return;
  ::kill(pid_, SIGINT);
  wait_for(pid_);
  pid_ = -1;
}

void PostgresServer::kill() {
  if (!running()) return;
  ::kill(pid_, SIGSTOP);  // so that no child is born between reading the list and the end
  const std::vector<pid_t> children = children_of(pid_);
  ::kill(pid_, SIGKILL);
  for (const pid_t child : children) ::kill(child, SIGKILL);
  wait_for(pid_);
  pid_ = -1;
  const bool ended = eventually([&] {
    for (const pid_t child : children) {
      if (!gone(child)) return false;
    }
    return true;
  });
  if (!ended) throw std::runtime_error("postgres_server: a killed server process is still there");
}

void PostgresServer::restart_with(
    const std::vector<std::pair<std::string, std::string>>& settings) {
  stop();
  append_settings(settings);
  start();
}

}  // namespace einmal::test
