// Both message parsers: however the bytes are cut, the same is said of them; what a request parser
// accepts is unambiguous, survives writing, and reads back as the same message.
// The first byte of the input chooses: bit 0 request or answer, the others the cuts.

#include <string>

#include "einmal/http/message_parser.hpp"
#include "einmal/http/replay_headers.hpp"
#include "einmal/http/transcript.hpp"
#include "einmal/http/write.hpp"
#include "expect.hpp"

namespace einmal::http {
namespace {

template <class Make>
std::string said_of(std::string_view bytes, std::uint8_t cuts, const Make& make) {
  auto whole_parser = make();
  const auto whole = transcript::of(whole_parser, {bytes});
  auto bytewise_parser = make();
  EINMAL_EXPECT(transcript::of(bytewise_parser, transcript::bytewise(bytes)) == whole);
  auto cut_parser = make();
  const auto at = bytes.size() * (cuts >> 1) / 128;
  EINMAL_EXPECT(transcript::of(cut_parser, transcript::cut_at(bytes, at)) == whole);
  return whole;
}

void expect_clean(const HeaderLines& lines) {
  for (const auto& line : lines) EINMAL_EXPECT(is_token(line.name) && is_field_value(line.value));
  EINMAL_EXPECT(lines.count("Content-Length") <= 1);
  EINMAL_EXPECT(!lines.has("Content-Length") || !lines.has("Transfer-Encoding"));
  const auto stored = stored_lines(lines, {});
  EINMAL_EXPECT(parse_stored_headers(serialize(stored)) == stored);
}

void request(std::string_view bytes, std::uint8_t cuts) {
  said_of(bytes, cuts, [] { return RequestParser(); });
  RequestParser parser;
  if (parser.feed(bytes).step != Step::head) return;
  const auto head = parser.head();
  expect_clean(head.headers);
  EINMAL_EXPECT(head.headers.count("Host") <= 1);
  EINMAL_EXPECT(head.target.front() == '/' || head.target == "*" || head.method == "CONNECT");
  std::string written;
  append_head(written, head);
  RequestParser again;
  // Written as HTTP/1.1, which asks for a Host.
  if (!head.headers.has("Host")) return;
  EINMAL_EXPECT(again.feed(written).step == Step::head);
  EINMAL_EXPECT(again.head().headers == head.headers && again.head().target == head.target);
  EINMAL_EXPECT(again.framing() == parser.framing());
  EINMAL_EXPECT(again.content_length() == parser.content_length());
}

void answer(std::string_view bytes, std::uint8_t cuts) {
  const auto make = [] {
    ResponseParser parser;
    parser.reset("POST");
    return parser;
  };
  said_of(bytes, cuts, make);
  auto parser = make();
  auto fed = parser.feed(bytes);
  auto rest = bytes.substr(fed.consumed);
  while (fed.step != Step::need_more && fed.step != Step::complete && fed.step != Step::error) {
    if (fed.step == Step::head) {
      EINMAL_EXPECT(parser.head().status >= 200 || parser.head().status == 101);
      EINMAL_EXPECT(parser.head().status <= 599);
      expect_clean(parser.head().headers);
    }
    fed = parser.feed(rest);
    rest.remove_prefix(fed.consumed);
  }
  if (fed.step != Step::need_more) return;
  // An end completes nothing but a close-delimited body.
  const bool whole = parser.finish(ResponseParser::End::clean).step == Step::complete;
  EINMAL_EXPECT(!whole || parser.framing() == Framing::until_close);
  EINMAL_EXPECT(!parser.reusable());
}

}  // namespace
}  // namespace einmal::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = input_text(data, size);
  if (input.empty()) return 0;
  const auto choice = static_cast<std::uint8_t>(input.front());
  if ((choice & 1) == 0) {
    einmal::http::request(input.substr(1), choice);
  } else {
    einmal::http::answer(input.substr(1), choice);
  }
  return 0;
}
