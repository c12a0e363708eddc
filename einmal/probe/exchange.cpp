#include "einmal/probe/exchange.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "einmal/http/message_parser.hpp"
#include "einmal/http/write.hpp"

namespace einmal::probe {

namespace {

constexpr std::size_t answer_limit = std::size_t{16} << 20;

std::string start_and_lines(const Request& request, std::string_view name, std::string value) {
  http::RequestHead head;
  head.method = request.method;
  head.target = request.target;
  head.headers = request.headers;
  if (!name.empty()) head.headers.add(name, value);
  std::string bytes;
  http::append_head(bytes, head);
  return bytes;
}

/// Takes pieces of an answer until it is whole or cannot become so.
class Reading {
 public:
  explicit Reading(std::string_view method) { parser_.reset(method); }

  /// False: no more input is wanted. What belongs to the next message stays in `input`.
  bool take(std::string& input) {
    std::string_view rest = input;
    bool more = true;
    while (more) {
      const auto fed = parser_.feed(rest);
      rest.remove_prefix(fed.consumed);
      if (fed.step == http::Step::need_more) break;
      more = act(fed);
    }
    input.erase(0, input.size() - rest.size());
    return more;
  }
  /// The stream ended without more input.
  void end(bool clean) {
    act(parser_.finish(clean ? http::ResponseParser::End::clean
                             : http::ResponseParser::End::broken));
    if (!whole_ && answer_.problem.empty()) answer_.problem = "the connection ended";
  }
  void give_up(std::string why) { answer_.problem = std::move(why); }

  Answer answer() && {
    if (whole_) {
      answer_.status = parser_.head().status;
      answer_.headers = parser_.head().headers;
    }
    return std::move(answer_);
  }

 private:
  bool act(const http::Fed& fed) {
    switch (fed.step) {
      case http::Step::body:
        answer_.body.append(fed.body);
        if (answer_.body.size() <= answer_limit) return true;
        answer_.problem = "the answer is larger than 16 MiB";
        return false;
      case http::Step::complete:
        whole_ = true;
        return false;
      case http::Step::error:
        answer_.problem = parser_.error().truncated && !parser_.started()
                              ? "closed without an answer"
                              : std::string(parser_.error().what);
        return false;
      default:
        return true;
    }
  }

  http::ResponseParser parser_;
  Answer answer_;
  bool whole_ = false;
};

}  // namespace

std::string head_bytes(const Request& request) {
  const bool has_body =
      !request.body.empty() || (request.method != "GET" && request.method != "DELETE");
  return start_and_lines(request, has_body ? "Content-Length" : "",
                         std::to_string(request.body.size()));
}

std::string to_bytes(const Request& request) { return head_bytes(request) + request.body; }

std::string to_chunked_bytes(const Request& request) {
  auto bytes = start_and_lines(request, "Transfer-Encoding", "chunked");
  const std::string_view body = request.body;
  const auto half = body.size() / 2;
  for (const auto part : {body.substr(0, half), body.substr(half)}) http::append_chunk(bytes, part);
  bytes += http::last_chunk;
  return bytes;
}

Exchange::Exchange(const Route& route, Milliseconds timeout, int receive_buffer)
    : timeout_(timeout) {
  auto socket = Socket::connect(route.endpoint, timeout, receive_buffer);
  if (!socket) {
    problem_ = socket.error().message;
    return;
  }
  socket_ = std::move(*socket);
  if (!route.tls) return;
  auto session = TlsSession::connect(socket_, route.host, *route.tls, timeout);
  if (session) {
    tls_ = std::move(*session);
    return;
  }
  problem_ = session.error().message;
  socket_.close();
}

bool Exchange::send(std::string_view bytes) {
  if (!socket_.is_open()) return false;
  return tls_ ? tls_->write(bytes, timeout_) : socket_.write(bytes, timeout_);
}

Incoming Exchange::read_some(Milliseconds wait, std::size_t limit) {
  return tls_ ? tls_->read_some(wait, limit) : socket_.read_some(wait, limit);
}

bool Exchange::answer_begins(Milliseconds wait) {
  if (!early_.empty() || !socket_.is_open()) return true;
  return tls_ ? tls_->is_readable(wait) : socket_.is_readable(wait);
}

void Exchange::half_close() {
  if (tls_) tls_->half_close();
  socket_.half_close();
}

Answer Exchange::read_answer(std::string_view method, std::size_t piece, Milliseconds pause) {
  if (!socket_.is_open()) {
    Answer none;
    none.problem = problem_.empty() ? "not connected" : problem_;
    return none;
  }
  Reading reading(method);
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  bool more = early_.empty() || reading.take(early_);
  while (more) {
    const auto left =
        std::chrono::duration_cast<Milliseconds>(deadline - std::chrono::steady_clock::now());
    auto next = read_some(std::max(left, Milliseconds(0)), piece);
    if (next.kind == Incoming::Kind::data) {
      early_ = std::move(next.bytes);
      more = reading.take(early_);
      if (pause.count() > 0 && more) std::this_thread::sleep_for(pause);
      continue;
    }
    if (next.kind == Incoming::Kind::timeout)
      reading.give_up("no answer in " + std::to_string(timeout_.count()) + " ms");
    else
      reading.end(next.kind == Incoming::Kind::end);
    break;
  }
  return std::move(reading).answer();
}

void Exchange::read_only(std::size_t bytes) {
  if (socket_.is_open()) read_some(timeout_, bytes);
}

}  // namespace einmal::probe
