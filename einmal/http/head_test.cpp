#include "einmal/http/head.hpp"

#include <gtest/gtest.h>

#include "einmal/http/target.hpp"
#include "einmal/http/transcript.hpp"
#include "einmal/http/write.hpp"

namespace einmal::http {
namespace {

TEST(HeaderLines, keep_order_case_and_repetition) {
  HeaderLines lines{{"B", "1"}, {"a", "2"}, {"b", ""}};
  EXPECT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines.first("b"), "1");
  EXPECT_EQ(lines.count("B"), 2U);
  EXPECT_EQ(lines.all("b"), (std::vector<std::string_view>{"1", ""}));
  EXPECT_EQ(lines[2], (HeaderLine{"b", ""}));
  EXPECT_FALSE(lines.has("c"));
  lines.set("B", "3");
  EXPECT_EQ(lines, (HeaderLines{{"a", "2"}, {"B", "3"}}));
  EXPECT_NE(lines, (HeaderLines{{"B", "3"}, {"a", "2"}}));
  EXPECT_EQ(lines.remove_if([](const HeaderLine& line) { return line.value == "2"; }), 1U);
  EXPECT_EQ(lines, (HeaderLines{{"B", "3"}}));
  lines.clear();
  EXPECT_TRUE(lines.empty());
}

TEST(HeaderLines, accept_views_into_themselves) {
  HeaderLines lines{{"Name", "value"}};
  for (int i = 0; i < 100; ++i) lines.add(lines[0].name, lines[0].value);
  lines.set("Name", *lines.first("name"));
  EXPECT_EQ(lines, (HeaderLines{{"Name", "value"}}));
}

TEST(HeaderLines, find_tokens_in_lists_over_several_lines) {
  const HeaderLines lines{{"Connection", "foo ,\tBar,, "}, {"connection", "baz"}};
  EXPECT_TRUE(lines.has_token("Connection", "bar"));
  EXPECT_TRUE(lines.has_token("Connection", "BAZ"));
  EXPECT_FALSE(lines.has_token("Connection", "fo"));
  EXPECT_FALSE(lines.has_token("Connection", ""));
}

TEST(HeaderLines, survive_storage_to_the_byte) {
  const HeaderLines lines{{"Set", ""}, {"L", std::string(6000, 'x')}, {"L", "\xff a,b;\"c\""}};
  EXPECT_EQ(parse_stored_headers(serialize(lines)), lines);
  EXPECT_EQ(parse_stored_headers(""), HeaderLines());
  for (const char* broken : {"A: b", "A: b\n", ": b\r\n", "A b\r\n", "A : b\r\n", "A: b\rc\r\n"}) {
    EXPECT_EQ(parse_stored_headers(broken), std::nullopt) << broken;
  }
}

TEST(FieldValue, holds_no_control_and_no_outer_blank) {
  for (const char* good : {"", "a b", "a\tb", "\xff"}) EXPECT_TRUE(is_field_value(good)) << good;
  for (const char* bad : {" a", "a ", "\t", "a\r\nB: c", "a\nb", "\x7f"}) {
    EXPECT_FALSE(is_field_value(bad)) << bad;
  }
  EXPECT_FALSE(is_field_value(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_token("X-a_b~1"));
  for (const char* bad : {"", "a b", "a:", "\xc3\xa4", "a\r"}) EXPECT_FALSE(is_token(bad)) << bad;
}

TEST(Authority, is_compared_in_lower_case_without_the_implied_port) {
  const auto normal = [](std::string_view text, std::string_view scheme) {
    const auto authority = parse_authority(text);
    return authority ? to_string(*authority, scheme) : std::string("none");
  };
  EXPECT_EQ(normal("Api.Example:80", "http"), "api.example");
  EXPECT_EQ(normal("Api.Example:80", "https"), "api.example:80");
  EXPECT_EQ(normal("h:443", "HTTPS"), "h");
  EXPECT_EQ(normal("h:", "http"), "h");
  EXPECT_EQ(normal("h:0080", "http"), "h");
  EXPECT_EQ(normal("[2001:DB8::1]:8080", "http"), "[2001:db8::1]:8080");
  EXPECT_EQ(normal("%41b", "http"), "%41b");
  for (const char* bad : {"", ":80", "h:x", "h:99999", "h:-1", "a b", "a/b", "u@h", "::1", "[::1",
                          "[zz::]", "h:80:80", "%4", "%zz", "h\\x", "[::1]x"}) {
    EXPECT_EQ(normal(bad, "http"), "none") << bad;
  }
}

TEST(Write, heads_parse_back_to_themselves) {
  RequestHead request{"POST", "/a?b", 11, {{"Host", "h"}, {"B", ""}, {"A", "x,y"}}};
  std::string bytes = "kept";
  append_head(bytes, request);
  RequestParser request_parser;
  request_parser.feed(std::string_view(bytes).substr(4));
  EXPECT_EQ(request_parser.head(), request);

  ResponseHead answer{201, "", 11, {{"Content-Length", "0"}}};
  bytes.clear();
  append_head(bytes, answer);
  EXPECT_EQ(bytes, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  answer.reason = "As you like";
  answer.status = 599;
  bytes.clear();
  append_head(bytes, answer);
  EXPECT_EQ(bytes, "HTTP/1.1 599 As you like\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(reason_phrase(504), "Gateway Timeout");
  EXPECT_EQ(reason_phrase(599), "");
}

TEST(Write, chunks_parse_back_to_the_body) {
  std::string bytes = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string body;
  for (const std::size_t size : {0U, 1U, 15U, 16U, 4096U, 100'000U}) {
    const std::string piece(size, 'x');
    append_chunk(bytes, piece);
    body += piece;
  }
  append_last_chunk(bytes, HeaderLines{{"T", "u"}});
  RequestParser parser;
  EXPECT_NE(transcript::of(parser, {bytes}).find("body " + body + "\ntrailers T: u\r\ncomplete"),
            std::string::npos);
  EXPECT_EQ(ChunkHead(UINT64_MAX).view(), "ffffffffffffffff\r\n");
}

}  // namespace
}  // namespace einmal::http
