#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "einmal/http/head.hpp"

/// HTTP/1.x messages out of bytes, one step at a time. No sockets, no buffers of the caller's kept.
///
///   for (;;) {
///     const auto fed = parser.feed(input);
///     input.remove_prefix(fed.consumed);
///     switch (fed.step) {
///       case Step::need_more: read more input, then feed again (nothing is left over) ...
///       case Step::head:      parser.head() and framing() are known ...
///       case Step::body:      fed.body is a piece of the body, a view into `input` ...
///       case Step::complete:  what is left in `input` belongs to the next message ...
///       case Step::error:     parser.error() ...
///
/// The same bytes give the same steps however they are cut, but for the borders of body pieces.
/// Strict where being lenient would let two parsers see two messages; docs/http-edge.md lists each
/// shape. Feeding on after `complete` or `error` repeats it and consumes nothing.

namespace einmal::http {

/// How the end of a message's body is found.
enum class Framing : std::uint8_t {
  none,         ///< No body.
  length,       ///< Content-Length.
  chunked,      ///< Transfer-Encoding: chunked.
  until_close,  ///< Answers only: the end of the connection is the end of the body.
  tunnel,       ///< Answers only: 101, or 2xx to CONNECT: what follows is no longer HTTP.
};

enum class Step : std::uint8_t {
  need_more,  ///< All input was consumed.
  head,
  interim,  ///< Answers only: head() is a 1xx answer; the final one is still to come.
  body,
  complete,
  error,
};

struct Fed {
  Step step = Step::need_more;
  std::size_t consumed = 0;
  std::string_view body;  ///< With Step::body: never empty.
};

/// Bounds on everything but the body, whose size is the caller's concern.
struct ParserLimits {
  std::size_t head = std::size_t{32} << 10;     ///< Bytes of start line, field lines, empty line.
  std::size_t lines = 256;                      ///< Field lines of a head.
  std::size_t trailers = std::size_t{8} << 10;  ///< Bytes of last chunk and trailer section.
  std::size_t chunk_extension = 1024;           ///< Bytes of one chunk's extensions.
  /// Bytes of chunk lines beyond 16 a chunk and twice the data: many tiny chunks with extensions.
  std::size_t chunk_waste = std::size_t{16} << 10;
  std::size_t interim = 64;  ///< 1xx answers before the final one.
};

/// Why a request is refused. The connection is to be closed after the answer: where the next
/// request begins is not known.
struct RequestError {
  int status = 400;       ///< 400, 431 (a limit on the head) or 501 (an unknown transfer coding).
  std::string_view what;  ///< For the answer's detail. Contains nothing the client sent.
};

/// Requests from clients. One parser serves one connection, message after message.
class RequestParser {
 public:
  explicit RequestParser(ParserLimits limits = {});
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  Fed feed(std::string_view input);
  /// Ready for the next message of the connection; keeps its memory.
  void reset();

  /// Whether a byte of the message has come (one empty line before it does not count).
  bool started() const;
  /// From Step::head on. Yours to change or move from. The target is in origin-form, or "*", or the
  /// authority-form of CONNECT: an absolute-form was reduced to its path after its authority was
  /// found equal to Host (HTTP/1.0 without Host: Host was added).
  RequestHead& head();
  /// From Step::complete on. Nothing in them counts as head.
  HeaderLines& trailers();
  Framing framing() const;
  std::optional<std::uint64_t> content_length() const;  ///< With Framing::length.
  bool keep_alive() const;        ///< The client lets the connection live on after this message.
  bool expects_continue() const;  ///< HTTP/1.1 with `Expect: 100-continue` and a body to come.
  const RequestError& error() const;  ///< After Step::error.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Why an answer is unusable. After the first byte of the request went out this is an unknown
/// outcome, never "nothing happened".
struct AnswerError {
  bool truncated = false;  ///< The stream ended too early; otherwise: garbage.
  std::string_view what;   ///< For the log. Contains nothing the upstream sent.
};

/// Answers from an upstream, 1xx ones included. One parser serves one connection.
class ResponseParser {
 public:
  explicit ResponseParser(ParserLimits limits = {});
  ~ResponseParser();
  ResponseParser(ResponseParser&&) noexcept;
  ResponseParser& operator=(ResponseParser&&) noexcept;

  /// Ready for the answer to a request of that method. Required before the first feed: the method
  /// decides whether there is a body.
  void reset(std::string_view request_method);
  Fed feed(std::string_view input);

  enum class End : std::uint8_t { clean, broken };
  /// The stream ended: by an orderly close (`clean`; over TLS with its close_notify) or otherwise.
  /// Step::complete for a body that ends so; Step::error (truncated) for anything unfinished.
  Fed finish(End end);

  bool started() const;     ///< Whether a byte of an answer, even an interim one, has come.
  ResponseHead& head();     ///< From Step::head (Step::interim: of that one). Yours to change.
  HeaderLines& trailers();  ///< From Step::complete on.
  Framing framing() const;
  std::optional<std::uint64_t> content_length() const;  ///< With Framing::length.
  /// After Step::complete: whether the connection may carry another exchange, *if nothing was left
  /// over in the input*. Not after a close-delimited body, `Connection: close`, HTTP/1.0 without
  /// keep-alive, or a 204 that announces a body.
  bool reusable() const;
  const AnswerError& error() const;  ///< After Step::error.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace einmal::http
