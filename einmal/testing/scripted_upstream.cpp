#include "einmal/testing/scripted_upstream.hpp"

#include <algorithm>
#include <utility>

namespace einmal::test {

void Gate::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  opened_.notify_all();
}

void Gate::wait(const std::function<bool()>& give_up) {
  std::unique_lock lock(mutex_);
  while (!open_ && !give_up()) opened_.wait_for(lock, Milliseconds(5));
}

Play Play::after_reading_only(std::size_t bytes) {
  Play play;
  play.only_bytes_ = bytes;
  return play;
}

Play& Play::send(std::string bytes) {
  steps_.emplace_back(std::move(bytes));
  return *this;
}

Play& Play::answer(int status, std::string body, HeaderList headers) {
  std::string bytes = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
  for (const auto& [name, value] : headers)
    bytes.append(name).append(": ").append(value).append("\r\n");
  bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  return send(std::move(bytes));
}

Play& Play::wait(std::shared_ptr<Gate> gate) {
  steps_.emplace_back(std::move(gate));
  return *this;
}

Play& Play::take(Milliseconds time) {
  steps_.emplace_back(time);
  return *this;
}

Play& Play::close() {
  steps_.emplace_back(Ending::close);
  return *this;
}

Play& Play::reset() {
  steps_.emplace_back(Ending::reset);
  return *this;
}

Play& Play::stall() {
  steps_.emplace_back(Ending::stall);
  return *this;
}

struct ScriptedUpstream::Connection {
  Socket socket;
  std::thread thread;
};

ScriptedUpstream::ScriptedUpstream() {
  always([](const HttpRequest&, std::size_t number) {
    return Play().answer(201, "{\"id\":" + std::to_string(number) + "}",
                         {{"Content-Type", "application/json"}});
  });
  acceptor_ = std::thread([this] { accept_connections(); });
}

ScriptedUpstream::~ScriptedUpstream() {
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

void ScriptedUpstream::always(Decide decide) {
  const std::lock_guard lock(mutex_);
  decide_ = std::move(decide);
}

void ScriptedUpstream::always(Play play) {
  always([play = std::move(play)](const HttpRequest&, std::size_t) { return play; });
}

void ScriptedUpstream::next(Play play) {
  const std::lock_guard lock(mutex_);
  next_.push_back(std::move(play));
}

std::vector<HttpRequest> ScriptedUpstream::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t ScriptedUpstream::count() const {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}

std::size_t ScriptedUpstream::effects(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      requests_.begin(), requests_.end(), [quoted = "\"" + std::string(key) + "\"", key](auto& r) {
        const auto value = r.header("Idempotency-Key");
        return value == key || value == quoted;
      }));
}

std::size_t ScriptedUpstream::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

std::size_t ScriptedUpstream::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

bool ScriptedUpstream::wait_for(std::size_t n) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return requests_.size() >= n; });
}

void ScriptedUpstream::accept_connections() {
  while (true) {
    auto socket = listener_.accept();
    const std::lock_guard lock(mutex_);
    if (!socket.is_open() || stopping_) return;
    ++connections_;
    auto& connection = open_.emplace_back();
    connection.socket = std::move(socket);
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

std::optional<Play> ScriptedUpstream::take_next() {
  const std::lock_guard lock(mutex_);
  ++begun_;
  if (next_.empty()) return std::nullopt;
  auto play = std::move(next_.front());
  next_.pop_front();
  return play;
}

void ScriptedUpstream::serve(Connection& connection) {
  MessageReader reader(connection.socket);
  while (true) {
    HttpRequest request;
    std::optional<Play> play;
    bool first = true;
    const bool whole = reader.read_request(request, [&](std::size_t bytes) {
      if (std::exchange(first, false)) play = take_next();
      return !play || !play->only_bytes_ || bytes < *play->only_bytes_;
    });
    if (whole) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      if (!play) play = decide_(request, requests_.size());
      changed_.notify_all();
    }
    if (!play || (!whole && !play->only_bytes_)) break;
    if (!perform(connection, *play)) break;
  }
  const std::lock_guard lock(mutex_);
  connection.socket.close();
}

bool ScriptedUpstream::perform(Connection& connection, const Play& play) {
  const auto stopping = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  for (const auto& step : play.steps_) {
    if (const auto* bytes = std::get_if<std::string>(&step)) {
      if (!connection.socket.write(*bytes)) return false;
    } else if (const auto* gate = std::get_if<std::shared_ptr<Gate>>(&step)) {
      (*gate)->wait(stopping);
    } else if (const auto* time = std::get_if<Milliseconds>(&step)) {
      eventually(stopping, *time);
    } else if (std::get<Play::Ending>(step) == Play::Ending::stall) {
      while (connection.socket.read_some(patience).kind == Incoming::Kind::data) {
      }
      return false;
    } else {
      const std::lock_guard lock(mutex_);
      if (std::get<Play::Ending>(step) == Play::Ending::reset) connection.socket.reset();
      return false;
    }
  }
  return true;
}

}  // namespace einmal::test
