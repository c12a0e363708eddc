#include "einmal/http/message_parser.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/http/transcript.hpp"
#include "einmal/http/write.hpp"

namespace einmal::http {
namespace {

struct Shape {
  const char* name;
  std::string bytes;
  int status;  ///< Of the refusal; 0: accepted.
};

std::string get(const std::string& lines) {
  return "GET /a HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n";
}
std::string post(const std::string& lines, const std::string& body) {
  return "POST /a HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n" + body;
}
std::string chunked(const std::string& body) {
  return post("Transfer-Encoding: chunked\r\n", body);
}
std::string answer(const std::string& lines, const std::string& body) {
  return "HTTP/1.1 200 OK\r\n" + lines + "\r\n" + body;
}
const std::string nul(1, '\0');

/// The lines of the edge table that concern any message, and their neighbours.
std::vector<Shape> field_shapes(const std::function<std::string(const std::string&)>& with) {
  return {
      {"plain", with("A: b\r\n"), 0},
      {"empty value", with("A:\r\n"), 0},
      {"blanks around a value", with("A: \t b \t\r\n"), 0},
      {"bytes above 7F in a value", with("A: \xff\x80\r\n"), 0},
      {"obs-fold by a space", with("A: b\r\n c\r\n"), 400},
      {"obs-fold by a tab", with("A: b\r\n\tc\r\n"), 400},
      {"obs-fold after an empty value", with("A:\r\n b\r\n"), 400},
      {"obs-fold that hides a line", with("A: b\r\n Content-Length: 3\r\n"), 400},
      {"blank line with a space", with("A: b\r\n \r\n"), 400},
      {"bare LF", with("A: b\nC: d\r\n"), 400},
      {"bare CR in a value", with("A: b\rc\r\n"), 400},
      {"CR CR LF", with("A: b\r\r\n"), 400},
      {"NUL in a value", with("A: b" + nul + "c\r\n"), 400},
      {"control in a value", with("A: b\x01\r\n"), 400},
      {"DEL in a value", with("A: b\x7f\r\n"), 400},
      {"blank before the colon", with("A : b\r\n"), 400},
      {"tab before the colon", with("A\t: b\r\n"), 400},
      {"empty name", with(": b\r\n"), 400},
      {"8-bit name", with("\xc3\xa4: b\r\n"), 400},
      {"no colon", with("Ab\r\n"), 400},
      {"Content-Length twice, equal", with("Content-Length: 0\r\nContent-Length: 0\r\n"), 400},
      {"Content-Length twice, unequal", with("Content-Length: 0\r\nContent-Length: 1\r\n"), 400},
      {"Content-Length twice, other case", with("content-length: 0\r\nContent-Length: 0\r\n"), 400},
      {"Content-Length list", with("Content-Length: 0, 0\r\n"), 400},
      {"Content-Length list of one", with("Content-Length: 0,\r\n"), 400},
      {"Content-Length signed", with("Content-Length: +0\r\n"), 400},
      {"Content-Length negative", with("Content-Length: -1\r\n"), 400},
      {"Content-Length hex", with("Content-Length: 0x1\r\n"), 400},
      {"Content-Length empty", with("Content-Length:\r\n"), 400},
      {"Content-Length with a blank inside", with("Content-Length: 1 0\r\n"), 400},
      {"Content-Length of 20 digits", with("Content-Length: 18446744073709551616\r\n"), 400},
      {"Content-Length of 30 digits", with("Content-Length: 100000000000000000000000000000\r\n"),
       400},
      {"Content-Length then chunked", with("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
       400},
      {"chunked then Content-Length", with("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"),
       400},
      {"chunked twice", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"chunked twice in one line", with("Transfer-Encoding: chunked, chunked\r\n"), 501},
      {"gzip, chunked", with("Transfer-Encoding: gzip, chunked\r\n"), 501},
      {"gzip and chunked on two lines",
       with("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 501},
      {"chunked, gzip", with("Transfer-Encoding: chunked, gzip\r\n"), 501},
      {"chunked and identity on two lines",
       with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), 400},
      {"identity", with("Transfer-Encoding: identity\r\n"), 501},
      {"xchunked", with("Transfer-Encoding: xchunked\r\n"), 501},
      {"chunked in quotes", with("Transfer-Encoding: \"chunked\"\r\n"), 501},
      {"chunked with a parameter", with("Transfer-Encoding: chunked;q=1\r\n"), 501},
      {"chunked with a comma", with("Transfer-Encoding: chunked,\r\n"), 501},
      {"empty Transfer-Encoding", with("Transfer-Encoding:\r\n"), 501},
      {"vertical tab before chunked",
       with("Transfer-Encoding: \x0b"
            "chunked\r\n"),
       400},
      {"name with an underscore is another name", with("Content_Length: 7\r\n"), 0},
  };
}

std::vector<Shape> request_shapes() {
  auto shapes = field_shapes(get);
  const std::vector<Shape> more = {
      {"chunked in another case", post("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n"), 0},
      {"Transfer-Encoding in HTTP/1.0",
       "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"Host missing", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 400},
      {"Host missing in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 0},
      {"Host twice, equal", "GET / HTTP/1.1\r\nHost: h\r\nhost: h\r\n\r\n", 400},
      {"Host twice in HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\nHost: g\r\n\r\n", 400},
      {"Host empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
      {"Host with a path", "GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", 400},
      {"Host with user information", "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", 400},
      {"Host with a list", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
      {"Host with a port that is no number", "GET / HTTP/1.1\r\nHost: h:8a\r\n\r\n", 400},
      {"Host with a port too large", "GET / HTTP/1.1\r\nHost: h:65536\r\n\r\n", 400},
      {"Host as IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 0},
      {"blank before the first line", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
      {"target with 8-bit bytes", "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"target with %2F", "GET /a%2Fb HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"target with a fragment", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"target with a blank", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"target with a tab", "GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"target without a slash", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"target empty", "GET  HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"star target with GET", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"star target with OPTIONS", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"authority-form with GET", "GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"authority-form with CONNECT", "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", 0},
      {"CONNECT without a port", "CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"CONNECT with a path", "CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"absolute-form of another scheme", "GET ftp://h/a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"absolute-form of another host", "GET http://g/a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"absolute-form of another port", "GET http://h:81/a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"absolute-form without a host", "GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"absolute-form with user information", "GET http://u@h/a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"lower-case method", "post / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"method that is no token", "G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"no method", " / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", 400},
      {"HTTP/0.9", "GET /\r\n\r\n", 400},
      {"lower-case http", "GET / http/1.1\r\nHost: h\r\n\r\n", 400},
      {"blank after the version", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400},
      {"two blanks before the target", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"bare LF after the request line", "GET / HTTP/1.1\nHost: h\r\n\r\n", 400},
      {"one empty line before", "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"two empty lines before", "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"LF before", "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"CR before", "\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"TLS instead of HTTP", std::string("\x16\x03\x01\x02\x00", 5), 400},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
  };
  shapes.insert(shapes.end(), more.begin(), more.end());
  return shapes;
}

std::vector<Shape> chunk_shapes(const std::function<std::string(const std::string&)>& with) {
  return {
      {"two chunks", with("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"), 0},
      {"leading zeros", with("0005\r\nhello\r\n000\r\n\r\n"), 0},
      {"upper-case hex", with("A\r\n0123456789\r\n0\r\n\r\n"), 0},
      {"extension", with("1;a=b\r\nx\r\n0;c=\"d;e\"\r\n\r\n"), 0},
      {"trailers", with("1\r\nx\r\n0\r\nT: u\r\nT: v\r\n\r\n"), 0},
      {"empty size", with("\r\nx\r\n0\r\n\r\n"), 400},
      {"size with a sign", with("+1\r\nx\r\n0\r\n\r\n"), 400},
      {"negative size", with("-1\r\nx\r\n0\r\n\r\n"), 400},
      {"size with 0x", with("0x1\r\nx\r\n0\r\n\r\n"), 400},
      {"size not hex", with("g\r\nx\r\n0\r\n\r\n"), 400},
      {"size of 17 digits", with("10000000000000000\r\nx\r\n0\r\n\r\n"), 400},
      {"blank before the size", with(" 1\r\nx\r\n0\r\n\r\n"), 400},
      {"underscore in the size", with("1_0\r\nx\r\n0\r\n\r\n"), 400},
      {"size ends in LF", with("1\nx\r\n0\r\n\r\n"), 400},
      {"size ends in CR alone", with("1\rx\r\n0\r\n\r\n"), 400},
      {"no CRLF after the data", with("1\r\nxy\r\n0\r\n\r\n"), 400},
      {"LF after the data", with("1\r\nx\n0\r\n\r\n"), 400},
      {"CR alone after the data", with("1\r\nx\r0\r\n\r\n"), 400},
      {"extension without a name", with("1;=b\r\nx\r\n0\r\n\r\n"), 400},
      {"LF in a quoted extension", with("1;a=\"\n\"\r\nx\r\n0\r\n\r\n"), 400},
      {"NUL in a quoted extension", with("1;a=\"" + nul + "\"\r\nx\r\n0\r\n\r\n"), 400},
      {"quoted extension over a line end", with("1;a=\"\r\nx\"\r\n0\r\n\r\n"), 400},
      {"long extension", with("1;a=" + std::string(2000, 'b') + "\r\nx\r\n0\r\n\r\n"), 400},
      {"very long extension", with("1;a=" + std::string(100'000, 'b') + "\r\nx\r\n0\r\n\r\n"), 400},
      {"many zeros", with(std::string(9000, '0') + "1\r\nx\r\n0\r\n\r\n"), 400},
      {"LF alone after the last chunk", with("0\r\n\n"), 400},
      {"LF alone as a chunk line", with("\n"), 400},
      {"LF LF after the last chunk", with("0\n\n"), 400},
      {"obs-fold in a trailer", with("0\r\nT: u\r\n v\r\n\r\n"), 400},
      {"obs-fold as first trailer line", with("0\r\n T: u\r\n\r\n"), 400},
      {"bare LF in a trailer", with("0\r\nT: u\nV: w\r\n\r\n"), 400},
      {"Content-Length as a trailer", with("0\r\nContent-Length: 3\r\n\r\n"), 400},
      {"Transfer-Encoding as a trailer", with("0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
      {"trailers too large", with("0\r\nT: " + std::string(10'000, 'u') + "\r\n\r\n"), 400},
      {"too many trailer lines", with([] {
         std::string lines = "0\r\n";
         for (int i = 0; i < 300; ++i) lines += "T: u\r\n";
         return lines + "\r\n";
       }()),
       400},
  };
}

template <class Make>
void expect_shapes(const std::vector<Shape>& shapes, const Make& make, bool with_status) {
  for (const auto& shape : shapes) {
    SCOPED_TRACE(shape.name);
    auto parser = make();
    const auto text = transcript::of(parser, {shape.bytes});
    const bool refused = text.find("\nerror ") != std::string::npos;
    EXPECT_EQ(refused, shape.status != 0) << text;
    if constexpr (requires { parser.error().status; }) {
      if (with_status && refused) {
        EXPECT_EQ(parser.error().status, shape.status) << text;
      }
    }
    EXPECT_NE(refused, text.find("complete") != std::string::npos) << text;
  }
}

RequestParser new_request() { return RequestParser(); }
ResponseParser new_answer() {
  ResponseParser parser;
  parser.reset("POST");
  return parser;
}

TEST(RequestParser, refuses_each_shape_of_a_head_that_two_readers_could_read_differently) {
  expect_shapes(request_shapes(), new_request, true);
}

TEST(RequestParser, refuses_each_malformed_chunk_and_trailer) {
  expect_shapes(chunk_shapes(chunked), new_request, true);
}

std::vector<Shape> answer_shapes() {
  // Two shapes are read to the end of the connection where a request has no body, so these carry
  // a length.
  auto shapes = field_shapes([](const std::string& lines) {
    const bool framed = lines.find("Content-Length") != std::string::npos ||
                        lines.find("Transfer-Encoding") != std::string::npos;
    return answer(lines + (framed ? "" : "Content-Length: 0\r\n"), "");
  });
  const std::vector<Shape> more = {
      {"status 99", "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", 400},
      {"status 600", "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n", 400},
      {"status 999", "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", 400},
      {"status of two digits", "HTTP/1.1 20 X\r\nContent-Length: 0\r\n\r\n", 400},
      {"status of four digits", "HTTP/1.1 2000 X\r\nContent-Length: 0\r\n\r\n", 400},
      {"status that is no number", "HTTP/1.1 2x0 X\r\nContent-Length: 0\r\n\r\n", 400},
      {"no reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 0},
      {"control in the reason", "HTTP/1.1 200 \x01\r\nContent-Length: 0\r\n\r\n", 400},
      {"Transfer-Encoding in HTTP/1.0",
       "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"SSH instead of HTTP", "SSH-2.0-OpenSSH_9.2\r\n", 400},
      {"an empty line before", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"body bytes instead of a head", "{\"id\":1}", 400},
  };
  shapes.insert(shapes.end(), more.begin(), more.end());
  return shapes;
}

TEST(ResponseParser, calls_each_malformed_head_garbage) {
  expect_shapes(answer_shapes(), new_answer, false);
}

TEST(ResponseParser, calls_each_malformed_chunk_and_trailer_garbage) {
  expect_shapes(chunk_shapes([](const std::string& body) {
                  return answer("Transfer-Encoding: chunked\r\n", body);
                }),
                new_answer, false);
}

template <class Make>
void expect_cuts_do_not_matter(const std::vector<Shape>& shapes, const Make& make,
                               std::uint64_t seed) {
  SeededRandom random(seed);
  for (const auto& shape : shapes) {
    SCOPED_TRACE(std::string(shape.name) + ", seed " + std::to_string(seed));
    auto whole_parser = make();
    const auto whole = transcript::of(whole_parser, {shape.bytes});
    auto bytewise_parser = make();
    EXPECT_EQ(transcript::of(bytewise_parser, transcript::bytewise(shape.bytes)), whole);
    if (shape.bytes.size() < 2000) {
      for (std::size_t at = 0; at <= shape.bytes.size(); ++at) {
        auto parser = make();
        EXPECT_EQ(transcript::of(parser, transcript::cut_at(shape.bytes, at)), whole) << at;
      }
    }
    for (int round = 0; round < 20; ++round) {
      std::vector<std::string_view> pieces;
      for (std::string_view rest = shape.bytes; !rest.empty();) {
        const auto size = std::min<std::size_t>(random.below(40), rest.size());
        pieces.push_back(rest.substr(0, size));
        rest.remove_prefix(size);
      }
      auto parser = make();
      EXPECT_EQ(transcript::of(parser, pieces), whole);
    }
  }
}

TEST(RequestParser, says_the_same_however_the_bytes_are_cut) {
  auto shapes = request_shapes();
  const auto chunks = chunk_shapes(chunked);
  shapes.insert(shapes.end(), chunks.begin(), chunks.end());
  shapes.push_back({"with a body", post("Content-Length: 5\r\n", "helloGET / HTTP/1.1\r\n"), 0});
  shapes.push_back({"head too large", get("A: " + std::string(40'000, 'x') + "\r\n"), 431});
  expect_cuts_do_not_matter(shapes, new_request, SystemRandom().below(UINT64_MAX));
}

TEST(ResponseParser, says_the_same_however_the_bytes_are_cut) {
  auto shapes = answer_shapes();
  shapes.push_back({"interim answers",
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
                        answer("Content-Length: 2\r\n", "hiX"),
                    0});
  expect_cuts_do_not_matter(shapes, new_answer, SystemRandom().below(UINT64_MAX));
}

TEST(RequestParser, says_the_same_of_random_mutations_however_they_are_cut) {
  const auto seed = SystemRandom().below(UINT64_MAX);
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  const std::vector<std::string> bases = {
      get("A: b\r\nConnection: close\r\n"),
      post("Content-Length: 5\r\n", "hello"),
      chunked("5;a=b\r\nhello\r\n0\r\nT: u\r\n\r\n"),
      "POST http://h:80/a?b HTTP/1.1\r\nHost: H\r\nContent-Length: 0\r\n\r\n",
  };
  constexpr std::string_view alphabet("\r\n\t :;,0159aAgG\"\\/#\x00\x7f\xff", 22);
  for (int round = 0; round < 4000; ++round) {
    auto bytes = bases[random.below(bases.size())];
    for (auto edits = 1 + random.below(3); edits > 0; --edits) {
      const auto at = random.below(bytes.size());
      const char c = alphabet[random.below(alphabet.size())];
      switch (random.below(3)) {
        case 0:
          bytes[at] = c;
          break;
        case 1:
          bytes.insert(at, 1, c);
          break;
        default:
          bytes.erase(at, 1);
      }
    }
    RequestParser whole, bytewise, halves;
    const auto said = transcript::of(whole, {bytes});
    ASSERT_EQ(transcript::of(bytewise, transcript::bytewise(bytes)), said) << bytes;
    ASSERT_EQ(transcript::of(halves, transcript::cut_at(bytes, random.below(bytes.size()))), said)
        << bytes;
  }
}

TEST(RequestParser, keeps_head_lines_in_wire_order_and_trailers_apart) {
  RequestParser parser;
  const std::string bytes = post("B: 1\r\nA: 2\r\nb: 3\r\nTransfer-Encoding: chunked\r\n",
                                 "1\r\nx\r\n0\r\nIdempotency-Key: late\r\nB: 4\r\n\r\n");
  const auto text = transcript::of(parser, {bytes});
  EXPECT_EQ(
      parser.head().headers,
      (HeaderLines{
          {"Host", "h"}, {"B", "1"}, {"A", "2"}, {"b", "3"}, {"Transfer-Encoding", "chunked"}}))
      << text;
  EXPECT_EQ(parser.trailers(), (HeaderLines{{"Idempotency-Key", "late"}, {"B", "4"}}));
  EXPECT_FALSE(parser.head().headers.has("Idempotency-Key"));
}

TEST(RequestParser, reduces_an_absolute_target_to_its_path) {
  const auto target = [](const std::string& line, const std::string& host) {
    RequestParser parser;
    const std::string bytes = line + "\r\n" + host + "\r\n";
    const auto text = transcript::of(parser, {bytes});
    EXPECT_NE(text.find("complete"), std::string::npos) << text;
    return parser.head().target + " " + std::string(parser.head().headers.first("Host").value());
  };
  EXPECT_EQ(target("GET http://h/a?b HTTP/1.1", "Host: h\r\n"), "/a?b h");
  EXPECT_EQ(target("GET HTTP://H:80 HTTP/1.1", "Host: h\r\n"), "/ h");
  EXPECT_EQ(target("GET https://h?q HTTP/1.1", "Host: H:443\r\n"), "/?q H:443");
  EXPECT_EQ(target("OPTIONS http://h HTTP/1.1", "Host: h\r\n"), "* h");
  EXPECT_EQ(target("GET http://[::1]:8080/a HTTP/1.1", "Host: [::1]:8080\r\n"), "/a [::1]:8080");
  EXPECT_EQ(target("GET http://h:8080/a HTTP/1.0", ""), "/a h:8080");
  EXPECT_EQ(target("GET /a%2Fb//c HTTP/1.1", "Host: h\r\n"), "/a%2Fb//c h");
}

TEST(RequestParser, learns_the_framing_from_the_head_alone) {
  const auto framing = [](const std::string& bytes) {
    RequestParser parser;
    EXPECT_EQ(parser.feed(bytes).step, Step::head);
    return std::pair(parser.framing(), parser.content_length().value_or(0));
  };
  EXPECT_EQ(framing(get("")), std::pair(Framing::none, std::uint64_t{0}));
  EXPECT_EQ(framing(post("Content-Length: 0\r\n", "")),
            std::pair(Framing::length, std::uint64_t{0}));
  EXPECT_EQ(framing(post("Content-Length: 18446744073709551615\r\n", "")),
            std::pair(Framing::length, UINT64_MAX));
  EXPECT_EQ(framing(chunked("")), std::pair(Framing::chunked, std::uint64_t{0}));
}

TEST(RequestParser, knows_whether_the_client_keeps_the_connection_and_expects_a_continue) {
  const auto flags = [](const std::string& bytes) {
    RequestParser parser;
    EXPECT_EQ(parser.feed(bytes).step, Step::head);
    return std::pair(parser.keep_alive(), parser.expects_continue());
  };
  EXPECT_EQ(flags(get("")), std::pair(true, false));
  EXPECT_EQ(flags(get("Connection: foo, Close\r\n")), std::pair(false, false));
  EXPECT_EQ(flags("GET / HTTP/1.0\r\n\r\n"), std::pair(false, false));
  EXPECT_EQ(flags("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), std::pair(true, false));
  EXPECT_EQ(flags(post("Content-Length: 1\r\nExpect: 100-Continue\r\n", "")),
            std::pair(true, true));
  EXPECT_EQ(flags(post("Content-Length: 0\r\nExpect: 100-continue\r\n", "")),
            std::pair(true, false));
  EXPECT_EQ(flags("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"),
            std::pair(false, false));
}

TEST(RequestParser, leaves_the_next_message_alone_and_reads_it_after_a_reset) {
  RequestParser parser;
  const std::string bytes = post("Content-Length: 2\r\n", "hi") + get("A: b\r\n");
  std::string_view input = bytes;
  auto fed = parser.feed(input);
  EXPECT_EQ(fed.step, Step::head);
  input.remove_prefix(fed.consumed);
  fed = parser.feed(input);
  EXPECT_EQ(fed.body, "hi");
  input.remove_prefix(fed.consumed);
  EXPECT_EQ(parser.feed(input).step, Step::complete);
  fed = parser.feed(input);
  EXPECT_EQ(fed.step, Step::complete);
  EXPECT_EQ(fed.consumed, 0U);
  parser.reset();
  EXPECT_FALSE(parser.started());
  fed = parser.feed(input);
  EXPECT_EQ(fed.step, Step::head);
  EXPECT_EQ(fed.consumed, input.size());
  EXPECT_EQ(parser.head().headers, (HeaderLines{{"Host", "h"}, {"A", "b"}}));
}

TEST(RequestParser, says_started_only_when_a_byte_of_a_message_came) {
  RequestParser parser;
  EXPECT_FALSE(parser.started());
  parser.feed("\r");
  parser.feed("\n");
  EXPECT_FALSE(parser.started());
  parser.feed("G");
  EXPECT_TRUE(parser.started());
}

TEST(RequestParser, refuses_lines_that_end_in_LF_without_waiting_for_the_end_of_the_head) {
  RequestParser parser;
  EXPECT_EQ(parser.feed("GET / HTTP/1.1\nHost: h\n\n").step, Step::error);
}

TEST(RequestParser, allows_a_head_of_exactly_the_limit_and_no_more) {
  const std::string bytes = get("A: b\r\n");
  for (const bool cut : {false, true}) {
    ParserLimits limits;
    limits.head = bytes.size();
    RequestParser fits(limits);
    const auto pieces = cut ? transcript::bytewise(bytes) : std::vector<std::string_view>{bytes};
    EXPECT_NE(transcript::of(fits, pieces).find("complete"), std::string::npos);
    limits.head = bytes.size() - 1;
    RequestParser too_small(limits);
    transcript::of(too_small, pieces);
    EXPECT_EQ(too_small.error().status, 431);
  }
}

TEST(RequestParser, bounds_the_number_of_lines) {
  ParserLimits limits;
  limits.lines = 3;
  RequestParser fits(limits), too_small(limits);
  EXPECT_EQ(fits.feed(get("A: 1\r\nA: 2\r\n")).step, Step::head);
  EXPECT_EQ(too_small.feed(get("A: 1\r\nA: 2\r\nA: 3\r\n")).step, Step::error);
  EXPECT_EQ(too_small.error().status, 431);
}

TEST(RequestParser, needs_more_where_there_is_no_buffer_yet) {
  RequestParser parser;
  EXPECT_EQ(parser.feed(std::string_view{}).step, Step::need_more);
}

TEST(RequestParser, takes_a_head_over_eight_kib_and_bodies_over_eight_mib) {
  RequestParser parser;
  const std::string head =
      get("Content-Length: 20000000\r\nA: " + std::string(30'000, 'x') + "\r\n");
  EXPECT_EQ(parser.feed(head).step, Step::head);
  const std::string piece(1'000'000, 'b');
  for (int i = 0; i < 20; ++i) EXPECT_EQ(parser.feed(piece).consumed, piece.size());
  EXPECT_EQ(parser.feed("").step, Step::complete);
}

TEST(RequestParser, refuses_many_tiny_chunks_with_extensions) {
  RequestParser parser;
  std::string bytes = chunked("");
  for (int i = 0; i < 100; ++i) bytes += "1;a=" + std::string(1000, 'b') + "\r\nx\r\n";
  EXPECT_NE(transcript::of(parser, {bytes}).find("outweigh"), std::string::npos);

  RequestParser many_small;
  std::string plain = chunked("");
  for (int i = 0; i < 100'000; ++i) plain += "1\r\nx\r\n";
  plain += "0\r\n\r\n";
  EXPECT_NE(transcript::of(many_small, {plain}).find("complete"), std::string::npos);
}

TEST(ResponseParser, reads_interim_answers_until_the_final_one) {
  auto parser = new_answer();
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
      answer("Content-Length: 2\r\nA: b\r\n", "hi");
  EXPECT_EQ(transcript::of(parser, {bytes}),
            "interim 100 Continue 11\ninterim 103 Early Hints 11\nLink: </a>\r\n"
            "head 200 OK 11\nContent-Length: 2\r\nA: b\r\nbody hi\ntrailers complete, 0 left");
  EXPECT_TRUE(parser.reusable());
}

TEST(ResponseParser, bounds_the_number_of_interim_answers) {
  auto parser = new_answer();
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += "HTTP/1.1 102 Processing\r\n\r\n";
  EXPECT_NE(transcript::of(parser, {bytes}).find("too many 1xx"), std::string::npos);
}

TEST(ResponseParser, expects_no_body_where_there_is_none) {
  const auto read = [](std::string_view method, const std::string& bytes) {
    ResponseParser parser;
    parser.reset(method);
    const auto text = transcript::of(parser, {bytes});
    return text.substr(text.rfind("complete")) + (parser.reusable() ? ", reusable" : "");
  };
  EXPECT_EQ(read("HEAD", answer("Content-Length: 5\r\n", "")), "complete, 0 left, reusable");
  EXPECT_EQ(read("HEAD", answer("Transfer-Encoding: chunked\r\n", "")),
            "complete, 0 left, reusable");
  EXPECT_EQ(read("HEAD", answer("", "")), "complete, 0 left, reusable");
  EXPECT_EQ(read("POST", "HTTP/1.1 204 No Content\r\n\r\n"), "complete, 0 left, reusable");
  EXPECT_EQ(read("POST", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
            "complete, 0 left, reusable");
  // A body all the same: its bytes stay, and the connection is not used again.
  EXPECT_EQ(read("POST", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
            "complete, 5 left");
  EXPECT_EQ(read("POST", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "complete, 0 left");
}

TEST(ResponseParser, hands_over_after_101_and_a_2xx_to_connect) {
  const auto framing = [](std::string_view method, const std::string& bytes) {
    ResponseParser parser;
    parser.reset(method);
    const auto fed = parser.feed(bytes);
    EXPECT_EQ(fed.step, Step::head);
    EXPECT_EQ(parser.feed(std::string_view(bytes).substr(fed.consumed)).step,
              parser.framing() == Framing::tunnel ? Step::complete : Step::body);
    EXPECT_FALSE(parser.reusable());
    return parser.framing();
  };
  EXPECT_EQ(framing("GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nraw"),
            Framing::tunnel);
  EXPECT_EQ(framing("CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nraw"), Framing::tunnel);
  EXPECT_EQ(framing("CONNECT", "HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nraw"), Framing::length);
}

TEST(ResponseParser, tells_a_close_delimited_body_from_a_truncated_one) {
  const auto read = [](const std::string& bytes, ResponseParser::End end) {
    auto parser = new_answer();
    const auto text = transcript::of(parser, {bytes});
    if (text.find("need_more") == std::string::npos) return std::string("no need of an end");
    const auto step = parser.finish(end).step;
    EXPECT_FALSE(parser.reusable());
    if (step == Step::complete) return std::string("complete");
    EXPECT_EQ(step, Step::error);
    EXPECT_TRUE(parser.error().truncated);
    return std::string(parser.error().what);
  };
  using enum ResponseParser::End;
  EXPECT_EQ(read(answer("", "hello"), clean), "complete");
  EXPECT_EQ(read(answer("", ""), clean), "complete");
  EXPECT_EQ(read(answer("", "hello"), broken), "the connection ended within the body");
  EXPECT_EQ(read(answer("Content-Length: 9\r\n", "hello"), clean),
            "the connection ended within the body");
  EXPECT_EQ(read(answer("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"), clean),
            "the connection ended within the body");
  EXPECT_EQ(read(answer("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nA: b\r\n"), clean),
            "the connection ended within the body");
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nA: b\r\n", clean), "the connection ended within the head");
  EXPECT_EQ(read("HTTP/1.1 100 Continue\r\n\r\n", clean), "the connection ended within the head");
  EXPECT_EQ(read("", clean), "the connection ended before an answer");
  EXPECT_EQ(read("", broken), "the connection ended before an answer");
}

// C17: half an answer never counts as one.
TEST(ResponseParser, never_takes_a_cut_answer_for_a_whole_one_C17) {
  const std::vector<std::string> answers = {
      answer("Content-Length: 5\r\n", "hello"),
      answer("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nT: u\r\n\r\n"),
      "HTTP/1.1 100 Continue\r\n\r\n" + answer("Content-Length: 5\r\n", "hello")};
  for (const auto& whole : answers) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      auto parser = new_answer();
      const auto text = transcript::of(parser, {std::string_view(whole).substr(0, size)});
      EXPECT_EQ(text.find("complete"), std::string::npos) << text;
      EXPECT_EQ(parser.finish(ResponseParser::End::clean).step, Step::error) << text;
      EXPECT_TRUE(parser.error().truncated);
    }
  }
  auto broken_size = new_answer();
  const auto text = transcript::of(
      broken_size, {answer("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\nzz\r\n")});
  EXPECT_NE(text.find("error"), std::string::npos);
  EXPECT_EQ(broken_size.finish(ResponseParser::End::clean).step, Step::error);
  EXPECT_FALSE(broken_size.error().truncated);
}

TEST(ResponseParser, reuses_a_connection_only_where_both_sides_said_so) {
  const auto reusable = [](const std::string& bytes) {
    auto parser = new_answer();
    transcript::of(parser, {bytes});
    return parser.reusable();
  };
  EXPECT_TRUE(reusable(answer("Content-Length: 0\r\n", "")));
  EXPECT_FALSE(reusable(answer("Content-Length: 0\r\nConnection: close\r\n", "")));
  EXPECT_FALSE(reusable("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_TRUE(reusable("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n"));
  EXPECT_FALSE(reusable(answer("Content-Length: 5\r\n", "hell")));
}

TEST(ResponseParser, speaks_of_each_answer_by_its_own_method_after_a_reset) {
  ResponseParser parser;
  parser.reset("HEAD");
  EXPECT_EQ(transcript::of(parser, {answer("Content-Length: 5\r\n", "")}).find("need_more"),
            std::string::npos);
  parser.reset("GET");
  EXPECT_FALSE(parser.started());
  EXPECT_NE(transcript::of(parser, {answer("Content-Length: 5\r\n", "hello")}).find("body hello"),
            std::string::npos);
}

}  // namespace
}  // namespace einmal::http
