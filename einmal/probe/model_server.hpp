#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "einmal/testing/http_message.hpp"
#include "einmal/testing/process.hpp"
#include "einmal/testing/socket.hpp"

/// For the tests of this room: a small API that keeps idempotency keys as it should, in memory, and
/// the ways in which it can be told to get it wrong.

namespace einmal::probe {

enum class Fault : std::uint8_t {
  executes_every_time,
  stores_after_the_work,  ///< Check, work, store: no claim.
  replays_other_bytes,
  replays_without_location,
  replays_unmarked,
  evaluates_refusals_again,
  replays_the_present,  ///< Looks the resource up instead of replaying its first answer.
  missing_is_empty_key,
  takes_empty_key,
  cuts_long_keys,
  folds_case_of_keys,
  takes_first_key_line,
  refuses_quotes,
  ignores_caller,
  ignores_path,
  ignores_body,
  ignores_body_while_running,
  body_is_part_of_the_key,
  framing_is_part_of_the_key,
  numbers_are_doubles,
  tells_duplicates_success_early,
  acts_on_half_a_request,
  forgets_unseen_answers,  ///< Keeps a result only if the connection is still there.
  doubles_effects,
  sends_again_inside,  ///< When what it depends on vanished, it asks once more.
  forgets_unknown_outcomes,
  forgets_too_early,
  expiry_is_no_claim,  ///< After the retention: check, work, store.
  forgets_by_crash,
  stays_in_progress_after_a_crash,
};

class ModelServer {
 public:
  explicit ModelServer(std::set<Fault> faults, test::Milliseconds retention = test::patience);
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  std::uint16_t port() const { return listener_.port(); }
  /// A file whose making is a crash of this server.
  const std::filesystem::path& crash_file() const { return crash_file_; }

 private:
  struct Record {
    std::string body;  ///< Of the request: its fingerprint.
    std::optional<std::string> answer;
    std::string replay, resource;
    std::chrono::steady_clock::time_point settled;
  };
  struct Connection {
    test::Socket socket;
    std::thread thread;
  };

  bool has(Fault fault) const { return faults_.contains(fault); }
  void accept_connections();
  void serve(Connection& connection);
  std::string handle(const test::HttpRequest& request, test::Socket& socket);
  std::string execute(const test::HttpRequest& request, const std::string& scope,
                      test::Socket& socket);
  std::string repeat(const test::HttpRequest& request, Record& record,
                     std::unique_lock<std::mutex>& lock);
  std::optional<std::string> scope_of(const test::HttpRequest& request) const;
  std::string fingerprint(const std::string& body) const;
  void forget();

  std::set<Fault> faults_;
  test::Milliseconds retention_;
  test::TempDir directory_;
  std::filesystem::path crash_file_;
  test::Listener listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Record> records_;
  std::set<std::string> orders_, orphans_;
  std::size_t effects_ = 0, executions_ = 0;
  bool stopping_ = false;
  std::list<Connection> open_;
  std::thread acceptor_;
};

}  // namespace einmal::probe
