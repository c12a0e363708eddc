#pragma once

#include <memory>
#include <utility>

#include "einmal/gateway/buffer.hpp"
#include "einmal/gateway/stream.hpp"
#include "einmal/http/message_parser.hpp"

namespace einmal::gateway {

/// Messages out of a stream: what was read and not used yet, and the parser it goes through.
template <class Parser>
class Inbox {
 public:
  Inbox(std::unique_ptr<Stream> stream, const http::ParserLimits& limits)
      : stream_(std::move(stream)), parser_(limits) {}

  Stream& stream() { return *stream_; }
  Parser& parser() { return parser_; }
  Buffer& buffer() { return buffer_; }

  /// The next step out of what was read already; need_more when that is used up. A body piece is
  /// valid until the next read.
  http::Fed poll() {
    if (buffer_.empty()) return parser_.feed({});
    const auto fed = parser_.feed(buffer_.view());
    buffer_.consume(fed.consumed);
    return fed;
  }

  /// One read of the stream; then `poll` again.
  Async<IoResult> fill(std::size_t size = Buffer::small) {
    const auto room = buffer_.space(size);
    const IoResult result = co_await stream_->read_some(room.data, room.size);
    buffer_.filled(result.bytes);
    co_return result;
  }

  /// For a connection that idles: keeps nothing but the stream.
  void give_memory_back(const http::ParserLimits& limits) {
    buffer_.release();
    parser_ = Parser(limits);
  }

 private:
  std::unique_ptr<Stream> stream_;
  Buffer buffer_;
  Parser parser_;
};

}  // namespace einmal::gateway
