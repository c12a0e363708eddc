#include "einmal/http/message_parser.hpp"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "einmal/http/head_scan.hpp"
#include "einmal/http/request_rules.hpp"

namespace einmal::http {

namespace {

namespace beast = boost::beast;
using ErrorCode = beast::error_code;
using BeastError = beast::http::error;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

// The head was searched for folds before it was parsed; a trailer section comes with its chunk.
bool has_fold(std::string_view bytes) {
  for (auto at = bytes.find("\r\n"); at + 2 < bytes.size(); at = bytes.find("\r\n", at + 2)) {
    if (bytes[at + 2] == ' ' || bytes[at + 2] == '\t') return true;
  }
  return false;
}

std::string_view describe(const ErrorCode& error) {
  if (error == BeastError::bad_line_ending) return "a line does not end in CRLF";
  if (error == BeastError::bad_method) return "the method is not a token";
  if (error == BeastError::bad_target) return "the request target is malformed";
  if (error == BeastError::bad_version) return "the version is neither HTTP/1.0 nor HTTP/1.1";
  if (error == BeastError::bad_status) return "the status is not three digits";
  if (error == BeastError::bad_reason) return "the reason phrase holds a control character";
  if (error == BeastError::bad_field) return "a field name is not a token followed by a colon";
  if (error == BeastError::bad_value) return "a field value is malformed";
  if (error == BeastError::bad_content_length) return "Content-Length is malformed or conflicting";
  if (error == BeastError::multiple_content_length) return "more than one Content-Length";
  if (error == BeastError::bad_transfer_encoding) return "Transfer-Encoding is conflicting";
  if (error == BeastError::bad_chunk) return "a chunk size is malformed";
  if (error == BeastError::bad_chunk_extension) return "a chunk extension is malformed";
  return "the message is malformed";
}

/// Beast's parser, with our refusals added to its own. Lines go to `head` until the empty line,
/// afterwards to `trailers`.
template <bool is_request>
class Reader final : public beast::http::basic_parser<is_request> {
 public:
  using Head = std::conditional_t<is_request, RequestHead, ResponseHead>;

  Reader(Head& head, HeaderLines& trailers, const ParserLimits& limits)
      : head_(head), trailers_(trailers), limits_(limits) {
    this->header_limit(std::numeric_limits<std::uint32_t>::max());  // HeadScan's limit holds
    this->body_limit(boost::none);
  }

  /// One step over contiguous bytes; what was not consumed is to be given again. False: refused.
  bool step(std::string_view bytes, std::size_t& consumed) {
    piece_ = {};
    ErrorCode error;
    consumed = this->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    wants_more_ = error == BeastError::need_more;
    if (!error || wants_more_) return true;
    if (refusal_.empty()) refusal_ = describe(error);
    return false;
  }
  bool wants_more() const { return wants_more_; }
  std::string_view piece() const { return piece_; }
  std::string_view refusal() const { return refusal_; }
  int refusal_status() const { return refusal_status_; }
  std::uint64_t chunk_left() const { return chunk_left_; }
  std::uint64_t chunk_size() const { return chunk_size_; }

 private:
  void refuse(ErrorCode& error, std::string_view why, int status = 400) {
    refusal_ = why;
    refusal_status_ = status;
    error = BeastError::bad_field;
  }

  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, ErrorCode&) override {
    if constexpr (is_request) {
      head_.method = view(method);
      head_.target = view(target);
      head_.version = version;
    }
  }

  void on_response_impl(int status, beast::string_view reason, int version,
                        ErrorCode& error) override {
    if constexpr (!is_request) {
      if (status < 100 || status > 599) return refuse(error, "the status is outside 100..599");
      head_.status = status;
      head_.reason = view(reason);
      head_.version = version;
    }
  }

  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     ErrorCode& error) override {
    if (head_done_) {
      if (trailers_.size() >= limits_.lines) return refuse(error, "too many trailer lines");
      return trailers_.add(view(name), view(value));
    }
    head_.headers.add(view(name), view(value));
    if (field == beast::http::field::content_length) {
      if (++length_lines_ > 1) return refuse(error, "more than one Content-Length");
      if (!all_digits(view(value))) return refuse(error, "Content-Length is not one number");
    } else if (field == beast::http::field::transfer_encoding) {
      if (head_.version < 11) return refuse(error, "Transfer-Encoding in HTTP/1.0");
      // Beast takes a message with a coding that it does not know for one without a body.
      if (!iequals(view(value), "chunked")) {
        return refuse(error, "a Transfer-Encoding other than chunked", 501);
      }
    }
  }

  void on_header_impl(ErrorCode&) override { head_done_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}

  std::size_t on_body_impl(beast::string_view body, ErrorCode&) override {
    piece_ = view(body);
    return body.size();
  }

  void on_chunk_header_impl(std::uint64_t size, beast::string_view extensions,
                            ErrorCode& error) override {
    if (extensions.size() > limits_.chunk_extension) {
      return refuse(error, "a chunk extension is too long");
    }
    if (has_control(view(extensions))) return refuse(error, "a control in a chunk extension");
    chunk_left_ = chunk_size_ = size;
  }

  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, ErrorCode&) override {
    piece_ = view(body);
    chunk_left_ -= body.size();
    return body.size();
  }

  void on_finish_impl(ErrorCode&) override {}

  Head& head_;
  HeaderLines& trailers_;
  const ParserLimits& limits_;
  bool head_done_ = false;
  bool wants_more_ = false;
  std::size_t length_lines_ = 0;
  std::uint64_t chunk_left_ = 0, chunk_size_ = 0;
  std::string_view piece_;
  std::string_view refusal_;
  int refusal_status_ = 400;
};

/// What both sides share: one message from its first byte to its last.
template <bool is_request>
class Message {
 public:
  using Head = typename Reader<is_request>::Head;

  explicit Message(const ParserLimits& limits) : limits_(limits) { begin({}); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// Starts over. `method`: what the answer is an answer to.
  void begin(std::string_view method) {
    method_ = method;
    interim_seen_ = 0;
    begin_head();
  }

  Fed feed(std::string_view input) {
    switch (phase_) {
      case Phase::interim:
        begin_head();
        [[fallthrough]];
      case Phase::head:
        return feed_head(input);
      case Phase::body:
        return feed_body(input);
      case Phase::complete:
        return {Step::complete, 0, {}};
      case Phase::failed:
        break;
    }
    return {Step::error, 0, {}};
  }

  Fed finish(bool clean) {
    if (phase_ == Phase::complete) return {Step::complete, 0, {}};
    if (phase_ == Phase::failed) return {Step::error, 0, {}};
    if (phase_ == Phase::body && reader_->is_done()) return complete(0);
    if (phase_ == Phase::body && framing_ == Framing::until_close && clean) {
      ErrorCode error;
      reader_->put_eof(error);
      if (!error) return complete(0);
    }
    truncated_ = true;
    if (!started()) return fail(400, "the connection ended before an answer");
    if (phase_ == Phase::body) return fail(400, "the connection ended within the body");
    return fail(400, "the connection ended within the head");
  }

  bool started() const { return phase_ != Phase::head || !pending_.empty() || interim_seen_ != 0; }
  Head& head() { return head_; }
  HeaderLines& trailers() { return trailers_; }
  Framing framing() const { return framing_; }
  bool connection_persists() const { return persists_; }
  bool expects_continue() const { return expects_continue_; }
  bool finished() const { return phase_ == Phase::complete; }
  std::optional<std::uint64_t> content_length() const { return length_; }
  std::string_view refusal() const { return refusal_; }
  int refusal_status() const { return refusal_status_; }
  bool truncated() const { return truncated_; }

 private:
  enum class Phase : std::uint8_t { head, interim, body, complete, failed };
  enum class EmptyLine : std::uint8_t { possible, after_cr, past };

  static HeadScan new_scan(const ParserLimits& limits) {
    return {is_request ? std::string_view() : std::string_view("HTTP/1."), limits.lines};
  }

  void begin_head() {
    // A connection that waits for its next message should not hold what one large head needed.
    if (pending_.capacity() > 4096) pending_ = std::string();
    pending_.clear();
    head_.headers.clear();
    trailers_.clear();
    scan_ = new_scan(limits_);
    reader_.reset();
    phase_ = Phase::head;
    empty_line_ = is_request ? EmptyLine::possible : EmptyLine::past;
    framing_ = Framing::none;
    length_.reset();
    persists_ = false;
    expects_continue_ = false;
    waste_ = 0;
    refusal_ = {};
    truncated_ = false;
  }

  Fed fail(int status, std::string_view why, std::size_t consumed = 0) {
    phase_ = Phase::failed;
    refusal_ = why;
    refusal_status_ = status;
    return {Step::error, consumed, {}};
  }
  Fed complete(std::size_t consumed) {
    phase_ = Phase::complete;
    return {Step::complete, consumed, {}};
  }

  // RFC 9112 section 2.2: one empty line before a request is passed over.
  std::optional<std::size_t> skip_empty_line(std::string_view input) {
    std::size_t skipped = 0;
    if (empty_line_ == EmptyLine::possible && !input.empty()) {
      empty_line_ = input.front() == '\r' ? EmptyLine::after_cr : EmptyLine::past;
      if (empty_line_ == EmptyLine::after_cr) skipped = 1;
    }
    if (empty_line_ == EmptyLine::after_cr && skipped < input.size()) {
      if (input[skipped] != '\n') return std::nullopt;
      ++skipped;
      empty_line_ = EmptyLine::past;
    }
    return skipped;
  }

  Fed feed_head(std::string_view input) {
    const auto empty_line = skip_empty_line(input);
    if (!empty_line) return fail(400, "a CR without LF before the request");
    const auto skipped = *empty_line;
    input.remove_prefix(skipped);
    const auto before = pending_.size();
    auto bytes = input.substr(0, limits_.head);
    if (before != 0) {
      pending_.append(input.substr(0, limits_.head - before));
      bytes = pending_;
    }
    switch (scan_.advance(bytes)) {
      case HeadScan::Found::refused:
        return fail(400, scan_.refusal(), skipped);
      case HeadScan::Found::too_many_lines:
        return fail(431, "too many header lines", skipped);
      case HeadScan::Found::end: {
        const auto fed = parse_head(bytes.substr(0, scan_.end()), skipped + scan_.end() - before);
        pending_.clear();
        return fed;
      }
      case HeadScan::Found::need_more:
        break;
    }
    if (bytes.size() >= limits_.head) return fail(431, "the head is too large", skipped);
    if (before == 0) pending_.assign(bytes);
    return {Step::need_more, skipped + bytes.size() - before, {}};
  }

  Fed parse_head(std::string_view bytes, std::size_t consumed) {
    reader_.emplace(head_, trailers_, limits_);
    head_.headers.reserve(scan_.lines(), bytes.size());
    reader_->skip(!is_request && has_no_body(bytes));
    std::size_t parsed = 0;
    if (!reader_->step(bytes, parsed)) {
      return fail(reader_->refusal_status(), reader_->refusal(), consumed);
    }
    if (reader_->wants_more() || parsed != bytes.size()) {
      return fail(400, "the head is malformed", consumed);
    }
    if constexpr (is_request) {
      if (const auto why = check_request(head_); !why.empty()) return fail(400, why, consumed);
    } else if (head_.status < 200 && head_.status != 101) {
      if (++interim_seen_ > limits_.interim) return fail(400, "too many 1xx answers", consumed);
      phase_ = Phase::interim;
      return {Step::interim, consumed, {}};
    }
    learn_framing();
    phase_ = Phase::body;
    return {Step::head, consumed, {}};
  }

  // Beast knows 1xx, 204 and 304; what depends on the request's method it must be told before the
  // status line is parsed.
  bool has_no_body(std::string_view head) const {
    return method_ == "HEAD" || (method_ == "CONNECT" && head.size() > 9 && head[9] == '2');
  }

  void learn_framing() {
    const bool close = head_.headers.has_token("Connection", "close");
    const bool keep_alive = head_.headers.has_token("Connection", "keep-alive");
    persists_ = !close && (head_.version >= 11 || keep_alive);
    if constexpr (is_request) {
      if (reader_->chunked()) {
        framing_ = Framing::chunked;
      } else if (reader_->content_length()) {
        framing_ = Framing::length;
      }
      expects_continue_ = head_.version >= 11 && !reader_->is_done() &&
                          head_.headers.has_token("Expect", "100-continue");
    } else {
      framing_ = answer_framing();
      if (framing_ == Framing::until_close || framing_ == Framing::tunnel) persists_ = false;
      const bool announces_body = reader_->chunked() || reader_->content_length().value_or(0) != 0;
      if (head_.status == 204 && announces_body) persists_ = false;
    }
    if (framing_ == Framing::length) length_ = *reader_->content_length();
  }

  Framing answer_framing() const requires(!is_request) {
    const bool connected = method_ == "CONNECT" && head_.status / 100 == 2;
    if (head_.status == 101 || connected) return Framing::tunnel;
    if (method_ == "HEAD" || head_.status == 204 || head_.status == 304) return Framing::none;
    if (reader_->chunked()) return Framing::chunked;
    return reader_->content_length() ? Framing::length : Framing::until_close;
  }

  Fed feed_body(std::string_view input) {
    if (reader_->is_done()) return complete(0);
    if (framing_ == Framing::chunked) return feed_chunked(input);
    if (input.empty()) return {};
    std::size_t consumed = 0;
    if (!reader_->step(input, consumed)) return fail(400, reader_->refusal(), consumed);
    return {Step::body, consumed, reader_->piece()};
  }

  // Beast wants a chunk line, and the last chunk with its trailers, in one piece, and asserts what
  // it believes of the size of that piece: pending_ grows line by line until it is whole.
  Fed feed_chunked(std::string_view input) {
    std::size_t consumed = 0;
    while (!reader_->is_done()) {
      const auto rest = input.substr(consumed);
      if (rest.empty()) return {Step::need_more, consumed, {}};
      if (reader_->chunk_left() > 0) {
        std::size_t taken = 0;
        if (!reader_->step(rest, taken)) return fail(400, reader_->refusal(), consumed);
        return {Step::body, consumed + taken, reader_->piece()};
      }
      if (!chunk_line(rest, consumed)) return fail(400, refusal_, consumed);
    }
    return complete(consumed);
  }

  /// Takes one line, or what there is of it, of a chunk line or trailer section. False: refused.
  bool chunk_line(std::string_view rest, std::size_t& consumed) {
    rest = rest.substr(0, limits_.trailers - pending_.size());
    const auto line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
    pending_.append(line);
    consumed += line.size();
    if (line.back() == '\n') {
      if (!pending_.ends_with("\r\n")) return refused("a chunk line or trailer ends in a bare LF");
      std::size_t parsed = 0;
      if (!reader_->step(pending_, parsed)) return refused(reader_->refusal());
      if (!reader_->wants_more()) return end_chunk_line(parsed);
    }
    return pending_.size() < limits_.trailers || refused("a chunk line or trailer is too long");
  }

  bool end_chunk_line(std::size_t parsed) {
    if (has_fold(pending_)) return refused("a folded trailer line (obs-fold)");
    if (parsed != pending_.size()) return refused("a chunk line is malformed");
    pending_.clear();
    return count_waste(parsed);
  }

  bool count_waste(std::size_t line) {
    const auto earned =
        16 + 2 * std::min<std::uint64_t>(reader_->chunk_size(), limits_.chunk_waste);
    waste_ += line;
    waste_ -= std::min<std::uint64_t>(waste_, earned);
    return waste_ <= limits_.chunk_waste || refused("chunk lines outweigh the body");
  }

  bool refused(std::string_view why) {
    refusal_ = why;
    return false;
  }

  const ParserLimits limits_;
  std::string method_;
  Phase phase_ = Phase::head;
  EmptyLine empty_line_ = EmptyLine::past;
  HeadScan scan_ = new_scan(limits_);
  std::string pending_;
  std::optional<Reader<is_request>> reader_;
  Head head_;
  HeaderLines trailers_;
  Framing framing_ = Framing::none;
  std::optional<std::uint64_t> length_;
  bool persists_ = false;
  bool expects_continue_ = false;
  std::size_t interim_seen_ = 0;
  std::uint64_t waste_ = 0;
  std::string_view refusal_;
  int refusal_status_ = 400;
  bool truncated_ = false;
};

}  // namespace

class RequestParser::Impl {
 public:
  explicit Impl(const ParserLimits& limits) : message(limits) {}
  Message<true> message;
  RequestError error;
};

RequestParser::RequestParser(ParserLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

Fed RequestParser::feed(std::string_view input) {
  const auto fed = impl_->message.feed(input);
  if (fed.step == Step::error) {
    impl_->error = {impl_->message.refusal_status(), impl_->message.refusal()};
  }
  return fed;
}

void RequestParser::reset() { impl_->message.begin({}); }
bool RequestParser::started() const { return impl_->message.started(); }
RequestHead& RequestParser::head() { return impl_->message.head(); }
HeaderLines& RequestParser::trailers() { return impl_->message.trailers(); }
Framing RequestParser::framing() const { return impl_->message.framing(); }
std::optional<std::uint64_t> RequestParser::content_length() const {
  return impl_->message.content_length();
}
bool RequestParser::keep_alive() const { return impl_->message.connection_persists(); }
bool RequestParser::expects_continue() const { return impl_->message.expects_continue(); }
const RequestError& RequestParser::error() const { return impl_->error; }

class ResponseParser::Impl {
 public:
  explicit Impl(const ParserLimits& limits) : message(limits) {}
  Message<false> message;
  AnswerError error;

  Fed note(const Fed& fed) {
    if (fed.step == Step::error) error = {message.truncated(), message.refusal()};
    return fed;
  }
};

ResponseParser::ResponseParser(ParserLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
ResponseParser::~ResponseParser() = default;
ResponseParser::ResponseParser(ResponseParser&&) noexcept = default;
ResponseParser& ResponseParser::operator=(ResponseParser&&) noexcept = default;

void ResponseParser::reset(std::string_view request_method) {
  impl_->message.begin(request_method);
}
Fed ResponseParser::feed(std::string_view input) { return impl_->note(impl_->message.feed(input)); }
Fed ResponseParser::finish(End end) {
  return impl_->note(impl_->message.finish(end == End::clean));
}
bool ResponseParser::started() const { return impl_->message.started(); }
ResponseHead& ResponseParser::head() { return impl_->message.head(); }
HeaderLines& ResponseParser::trailers() { return impl_->message.trailers(); }
Framing ResponseParser::framing() const { return impl_->message.framing(); }
std::optional<std::uint64_t> ResponseParser::content_length() const {
  return impl_->message.content_length();
}
bool ResponseParser::reusable() const {
  return impl_->message.finished() && impl_->message.connection_persists();
}
const AnswerError& ResponseParser::error() const { return impl_->error; }

}  // namespace einmal::http
