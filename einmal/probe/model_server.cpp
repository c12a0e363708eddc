#include "einmal/probe/model_server.hpp"

#include <chrono>
#include <regex>
#include <utility>

namespace einmal::probe {

using test::HeaderList;
using test::HttpRequest;
using SteadyClock = std::chrono::steady_clock;

namespace {

std::string answer(int status, const std::string& body, const HeaderList& headers = {}) {
  std::string bytes = "HTTP/1.1 " + std::to_string(status) + " Model\r\n";
  for (const auto& [name, value] : headers) bytes += name + ": " + value + "\r\n";
  return bytes +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string refusal(int status) { return answer(status, "{\"status\":\"no\"}"); }

std::string unquoted(std::string key) {
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
    key = key.substr(1, key.size() - 2);
  return key;
}

}  // namespace

ModelServer::ModelServer(std::set<Fault> faults, test::Milliseconds retention)
    : faults_(std::move(faults)),
      retention_(retention),
      crash_file_(directory_.path() / "crashed") {
  acceptor_ = std::thread([this] { accept_connections(); });
}

ModelServer::~ModelServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  listener_.stop();
  acceptor_.join();
  for (auto& connection : open_) {
    {
      const std::lock_guard lock(mutex_);
      if (connection.socket.is_open()) connection.socket.shut_down();
    }
    connection.thread.join();
  }
}

void ModelServer::accept_connections() {
  while (true) {
    auto socket = listener_.accept();
    const std::lock_guard lock(mutex_);
    if (!socket.is_open() || stopping_) return;
    auto& connection = open_.emplace_back();
    connection.socket = std::move(socket);
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

void ModelServer::serve(Connection& connection) {
  test::MessageReader reader(connection.socket);
  while (true) {
    HttpRequest request;
    bool counted = false;
    const bool whole = reader.read_request(request, [&](std::size_t) {
      const bool half = has(Fault::acts_on_half_a_request) &&
                        reader.leftover().find("POST /orders") != std::string::npos;
      if (half && !std::exchange(counted, true)) {
        const std::lock_guard lock(mutex_);
        ++effects_;
      }
      return true;
    });
    if (!whole || !connection.socket.write(handle(request, connection.socket))) break;
  }
  const std::lock_guard lock(mutex_);
  connection.socket.close();
}

/// A crash that loses the memory; the effects are kept elsewhere.
void ModelServer::forget() {
  std::error_code error;
  if (!std::filesystem::remove(crash_file_, error)) return;
  if (has(Fault::forgets_by_crash)) records_.clear();
  if (!has(Fault::stays_in_progress_after_a_crash)) return;
  for (const auto& [scope, record] : records_) {
    if (!record.answer) orphans_.insert(scope);
  }
}

std::string ModelServer::fingerprint(const std::string& body) const {
  if (!has(Fault::numbers_are_doubles)) return body;
  return std::regex_replace(body, std::regex("900719925474099[0-9]"), "9007199254740992");
}

/// Nothing: without a key. Throws an answer's status when the key is refused.
std::optional<std::string> ModelServer::scope_of(const HttpRequest& request) const {
  const auto lines = request.count("Idempotency-Key");
  auto key = request.header("Idempotency-Key");
  if (lines == 0) {
    if (!has(Fault::missing_is_empty_key)) return std::nullopt;
  } else if (key.empty()) {
    if (!has(Fault::takes_empty_key)) throw 400;
  }
  if (lines > 1 && !has(Fault::takes_first_key_line)) throw 400;
  if (key.starts_with('"') && has(Fault::refuses_quotes)) throw 400;
  key = unquoted(key);
  if (key.size() > 255) {
    if (!has(Fault::cuts_long_keys)) throw 400;
    key.resize(255);
  }
  if (has(Fault::folds_case_of_keys)) {
    for (char& c : key) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  auto scope = key;
  if (!has(Fault::ignores_caller)) scope += "\n" + request.header("X-Caller");
  if (!has(Fault::ignores_path)) scope += "\n" + request.target;
  if (has(Fault::body_is_part_of_the_key)) scope += "\n" + request.body;
  if (has(Fault::framing_is_part_of_the_key)) scope += "\n" + request.header("Transfer-Encoding");
  return scope;
}

std::string ModelServer::handle(const HttpRequest& request, test::Socket& socket) {
  std::unique_lock lock(mutex_);
  forget();
  if (request.method == "GET") return answer(200, "{\"count\":" + std::to_string(effects_) + "}");
  if (request.method == "DELETE") {
    return orders_.erase(request.target) > 0 ? answer(200, "{}") : refusal(404);
  }
  std::optional<std::string> scope;
  try {
    scope = scope_of(request);
  } catch (int status) {
    return refusal(status);
  }
  if (!scope || has(Fault::executes_every_time)) {
    lock.unlock();
    return execute(request, {}, socket);
  }
  const auto found = records_.find(*scope);
  if (found != records_.end()) {
    const auto& record = found->second;
    const auto keep = has(Fault::forgets_too_early) ? retention_ / 4 : retention_;
    const bool over = record.answer && SteadyClock::now() > record.settled + keep;
    if (!over) return repeat(request, found->second, lock);
    if (!has(Fault::expiry_is_no_claim)) records_.erase(found);
  }
  if (!has(Fault::stores_after_the_work) && found == records_.end())
    records_[*scope].body = fingerprint(request.body);
  else if (!has(Fault::stores_after_the_work) && !has(Fault::expiry_is_no_claim))
    records_[*scope].body = fingerprint(request.body);
  lock.unlock();
  return execute(request, *scope, socket);
}

std::string ModelServer::repeat(const HttpRequest& request, Record& record,
                                std::unique_lock<std::mutex>& lock) {
  const bool running = !record.answer;
  const bool ignores =
      has(Fault::ignores_body) || (running && has(Fault::ignores_body_while_running));
  if (!ignores && record.body != fingerprint(request.body)) return refusal(422);
  if (running) {
    if (has(Fault::tells_duplicates_success_early)) return answer(200, "{\"status\":\"accepted\"}");
    if (!has(Fault::ignores_body_while_running)) return refusal(409);
    changed_.wait_for(lock, test::patience, [&] { return record.answer.has_value(); });
  }
  if (has(Fault::replays_the_present) && !orders_.contains(record.resource)) return refusal(404);
  return record.replay;
}

std::string ModelServer::execute(const HttpRequest& request, const std::string& scope,
                                 test::Socket& socket) {
  const bool racy = has(Fault::stores_after_the_work) || has(Fault::expiry_is_no_claim);
  const bool slow = !request.header("X-Slow").empty();
  if (slow || racy) std::this_thread::sleep_for(test::Milliseconds(slow ? 150 : 30));
  std::unique_lock lock(mutex_);
  const auto number = std::to_string(++executions_);
  std::string first, replay, resource;
  const HeaderList marked =
      has(Fault::replays_unmarked) ? HeaderList{} : HeaderList{{"Idempotent-Replayed", "true"}};
  if (request.body.find("declined") != std::string::npos) {
    const bool again = has(Fault::evaluates_refusals_again);
    first = answer(402, "{\"status\":\"declined\"}");
    replay = answer(again ? 409 : 402, "{\"status\":\"declined\"}", marked);
  } else {
    if (!has(Fault::acts_on_half_a_request)) effects_ += has(Fault::doubles_effects) ? 2 : 1;
    resource = "/orders/" + number;
    orders_.insert(resource);
    const auto body = "{\"id\":" + number + "}";
    const HeaderList location{{"Location", resource}};
    auto kept = has(Fault::replays_without_location) ? HeaderList{} : location;
    kept.insert(kept.end(), marked.begin(), marked.end());
    first = answer(201, body, location);
    replay = answer(201, body + (has(Fault::replays_other_bytes) ? " " : ""), kept);
  }
  if (!request.header("X-Fault").empty()) {
    if (has(Fault::sends_again_inside)) ++effects_;
    first = replay = refusal(504);
    if (has(Fault::forgets_unknown_outcomes)) {
      records_.erase(scope);
      return first;
    }
  }
  bool gone = false;
  if (has(Fault::forgets_unseen_answers) && !scope.empty()) {
    lock.unlock();
    const bool written = socket.write(first);
    gone = !written || socket.read_some(test::Milliseconds(40)).kind == test::Incoming::Kind::reset;
    first.clear();
    lock.lock();
  }
  if (scope.empty() || orphans_.contains(scope)) return first;
  if (gone) {
    records_.erase(scope);
    return first;
  }
  auto& record = records_[scope];
  record.body = fingerprint(request.body);
  record.answer = first;
  record.replay = replay;
  record.resource = resource;
  record.settled = SteadyClock::now();
  changed_.notify_all();
  return first;
}

}  // namespace einmal::probe
