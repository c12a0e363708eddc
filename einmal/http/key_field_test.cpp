#include "einmal/http/key_field.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "einmal/http/message_parser.hpp"
#include "einmal/http/structured_field.hpp"

namespace einmal::http {
namespace {

namespace json = boost::json;

std::string key_of(const KeyFound& found) {
  if (std::holds_alternative<key::Absent>(found)) return "(absent)";
  const auto* present = std::get_if<key::Present>(&found);
  return present != nullptr ? present->value : "(invalid)";
}
std::string key_of(std::string_view value) { return key_of(parse_key(value)); }

/// What the gateway would find in a request with these head lines; "(refused)" by the parser.
std::string key_in(const std::string& lines, const KeyNames& names = {}) {
  RequestParser parser;
  const auto fed = parser.feed("POST / HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
  return fed.step == Step::head ? key_of(find_key(parser.head().headers, names)) : "(refused)";
}

TEST(KeyField, quoted_and_bare_spell_the_same_key) {
  const std::string uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324";
  EXPECT_EQ(key_of(uuid), uuid);
  EXPECT_EQ(key_of("\"" + uuid + "\""), uuid);
  EXPECT_EQ(key_of("\"" + uuid + "\";a;b=1;c=\"x;y\";d=:YQ==:;e=?1;f=tok/en"), uuid);
  EXPECT_EQ(key_of("\t " + uuid + " \t"), uuid);
  EXPECT_EQ(key_of("!#$%&'()*+-./:<=>?@[]^_`{|}~"), "!#$%&'()*+-./:<=>?@[]^_`{|}~");
}

TEST(KeyField, quotation_marks_admit_what_is_ambiguous_when_bare) {
  EXPECT_EQ(key_of("\"a,b;c\""), "a,b;c");
  EXPECT_EQ(key_of("\"a\\\"b\\\\c\""), "a\"b\\c");
  for (const char* bare : {"a,b", "a;b", "a\\b", "a\"b", "a, a", "a;p=1"}) {
    EXPECT_EQ(key_of(bare), "(invalid)") << bare;
  }
}

TEST(KeyField, refuses_empty_blank_long_and_foreign_bytes) {
  for (const char* bad :
       {"",       " ",        "\"\"",         "\" \"",    "\"a b\"",     "a b",      "a\tb",
        "\x80",   "a\xff",    "\"\xc3\xa4\"", "\x7f",     "\"a",         "a\"",      "\"a\"b",
        "\"a\";", "\"a\" ;b", "\"a\";B",      "\"a\";b=", "\"a\",\"b\"", "\"a\\b\"", "'a\"'"}) {
    EXPECT_EQ(key_of(bad), "(invalid)") << bad;
  }
  const std::string longest(255, 'k');
  EXPECT_EQ(key_of(longest), longest);
  EXPECT_EQ(key_of("\"" + longest + "\""), longest);
  for (const std::size_t size : {256U, 8000U}) {
    EXPECT_EQ(key_of(std::string(size, 'k')), "(invalid)") << size;
    EXPECT_EQ(key_of("\"" + std::string(size, 'k') + "\""), "(invalid)") << size;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible = byte >= 0x21 && byte <= 0x7e;
    const bool plain = visible && std::string_view("\",;\\").find(static_cast<char>(byte)) ==
                                      std::string_view::npos;
    const std::string key = std::string("k") + static_cast<char>(byte) + "k";
    EXPECT_EQ(key_of(key), plain ? key : "(invalid)") << byte;
  }
}

TEST(KeyField, a_key_sent_twice_is_never_another_key_C09) {
  EXPECT_EQ(key_in("Idempotency-Key: K\r\n"), "K");
  EXPECT_EQ(key_in("Idempotency-Key: K\r\nIdempotency-Key: K\r\n"), "(invalid)");           // (a)
  EXPECT_EQ(key_in("Idempotency-Key: K\r\nA: b\r\nidempotency-key: K2\r\n"), "(invalid)");  // (b)
  EXPECT_EQ(key_in("Idempotency-Key: K, K\r\n"), "(invalid)");                              // (c)
  EXPECT_EQ(key_in("Idempotency-Key: \"K\", \"K\"\r\n"), "(invalid)");
  EXPECT_EQ(key_in("Idempotency-Key: \"K\"\r\n"), "K");          // (d)
  EXPECT_EQ(key_in("IDEMPOTENCY-KEY: K\r\n"), "K");              // (e)
  EXPECT_EQ(key_in("Idempotency-Key:\t  K \t\r\n"), "K");        // (f)
  EXPECT_EQ(key_in("Idempotency-Key:\r\n K\r\n"), "(refused)");  // (g)
  EXPECT_EQ(key_in("Idempotency-Key: K\r\n K\r\n"), "(refused)");
  EXPECT_EQ(key_in("Idempotency-Key: " + std::string(255, 'k') + "\r\n"),  // (h)
            std::string(255, 'k'));
  EXPECT_EQ(key_in("Idempotency-Key: " + std::string(256, 'k') + "\r\n"), "(invalid)");
  EXPECT_EQ(key_in("Idempotency-Key: " + std::string(8000, 'k') + "\r\n"), "(invalid)");
  EXPECT_EQ(key_in("Idempotency-Key: K\x80\r\n"), "(invalid)");  // (i)
  EXPECT_EQ(key_in("Idempotency-Key: K\xff\r\n"), "(invalid)");
  EXPECT_EQ(key_in("Idempotency-Key: K\x01\r\n"), "(refused)");
  EXPECT_EQ(key_in("Idempotency-Key: \r\n"), "(invalid)");
  EXPECT_EQ(key_in(""), "(absent)");
}

TEST(KeyField, says_what_is_wrong_with_a_key) {
  const auto why = [](const std::string& value) {
    return std::string(std::get<key::Invalid>(parse_key(value)).why);
  };
  EXPECT_NE(why("").find("empty"), std::string::npos);
  EXPECT_NE(why(std::string(256, 'k')).find("255"), std::string::npos);
  EXPECT_NE(why("a,b").find("comma"), std::string::npos);
  EXPECT_NE(why("\"a").find("RFC 8941"), std::string::npos);
}

TEST(KeyField, an_alias_carries_a_key_of_its_own_and_never_a_second_C09) {
  const KeyNames names{"Idempotency-Key", {"X-Idempotency-Key", "PayPal-Request-Id"}};
  EXPECT_EQ(key_in("paypal-request-id: K\r\n", names), "K");
  EXPECT_EQ(key_in("X-Idempotency-Key: K\r\nIdempotency-Key: K\r\n", names), "(invalid)");  // (j)
  EXPECT_EQ(key_in("X-Idempotency-Key: K\r\nPayPal-Request-Id: L\r\n", names), "(invalid)");
  EXPECT_EQ(key_in("X-Idempotency-Key: K\r\n"), "(absent)");
  EXPECT_EQ(key_in("Idempotency-Key: K\r\n", {"Request-Token", {}}), "(absent)");
}

TEST(KeyField, a_body_member_carries_the_key_itself_and_never_a_second) {
  EXPECT_EQ(key_of(parse_member_key("a,b\"c")), "a,b\"c");
  EXPECT_EQ(key_of(parse_member_key("")), "(invalid)");
  EXPECT_EQ(key_of(parse_member_key("a b")), "(invalid)");
  EXPECT_EQ(key_of(parse_member_key(std::string(256, 'k'))), "(invalid)");
  const KeyFound absent = key::Absent{}, present = key::Present{"K"}, invalid = key::Invalid{"x"};
  EXPECT_EQ(key_of(only_key(absent, absent)), "(absent)");
  EXPECT_EQ(key_of(only_key(absent, present)), "K");
  EXPECT_EQ(key_of(only_key(present, absent)), "K");
  EXPECT_EQ(key_of(only_key(present, present)), "(invalid)");
  EXPECT_EQ(key_of(only_key(absent, invalid)), "(invalid)");
  EXPECT_EQ(key_of(only_key(invalid, absent)), "(invalid)");
}

/// The cases of one file of the published structured-field tests; says what it read, or that there
/// was nothing to read.
json::array vector_cases(const std::string& name) {
  const char* given = std::getenv("EINMAL_VECTORS");
  const auto root = given != nullptr
                        ? std::filesystem::path(given)
                        : std::filesystem::path(EINMAL_SOURCE_DIR) / "../shared/vectors";
  std::ifstream in(root / "structured-fields" / (name + ".json"), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto cases = text.empty() ? json::array() : json::parse(text).as_array();
  std::cout << "vectors: structured-fields-" << name << " " << cases.size() << "\n";
  if (cases.empty()) std::cout << "skipped: no vectors in " << root << "\n";
  const char* ci = std::getenv("CI");
  if (cases.empty() && ci != nullptr && std::string(ci) == "true" &&
      std::filesystem::is_directory(root)) {
    ADD_FAILURE() << "the vectors folder is there, but nothing was read of " << name;
  }
  return cases;
}

std::vector<std::string> raw_lines(const json::object& test) {
  std::vector<std::string> lines;
  for (const auto& line : test.at("raw").as_array()) lines.emplace_back(line.as_string());
  return lines;
}

/// Every case of a file of Strings, read as a String item and as a key. A field that is split over
/// two lines is one String for RFC 8941 (it may also be refused); as a key it is refused.
void expect_string_vectors(const std::string& file) {
  for (const auto& value : vector_cases(file)) {
    const auto& test = value.as_object();
    SCOPED_TRACE(std::string(test.at("name").as_string()));
    const auto lines = raw_lines(test);
    std::string joined;
    HeaderLines head;
    for (const auto& line : lines) {
      joined += (joined.empty() ? "" : ", ") + line;
      head.add("Idempotency-Key", line);
    }
    const bool must_fail = test.contains("must_fail");
    const auto content = parse_string_item(joined);
    EXPECT_EQ(content.has_value(), !must_fail);
    if (content && !must_fail) {
      EXPECT_EQ(*content, std::string(test.at("expected").as_array().at(0).as_string()));
    }
    const auto key = key_of(find_key(head, {}));
    if (lines.size() > 1 || (must_fail && joined.starts_with('"'))) {
      EXPECT_EQ(key, "(invalid)");
    } else if (!must_fail) {
      EXPECT_TRUE(key == *content || key == "(invalid)") << key;
    }
  }
}

TEST(KeyFieldVectors, read_every_string_case) { expect_string_vectors("string"); }

TEST(KeyFieldVectors, read_every_generated_string_case) {
  expect_string_vectors("string-generated");
}

// Items that are not Strings are no quoted keys. As a bare key the integer is visible ASCII like
// any other text; HTTP itself removes the blanks around it, tabs included.
TEST(KeyFieldVectors, read_every_item_case) {
  for (const auto& value : vector_cases("item")) {
    const auto& test = value.as_object();
    SCOPED_TRACE(std::string(test.at("name").as_string()));
    const auto line = raw_lines(test).at(0);
    EXPECT_EQ(parse_string_item(line), std::nullopt);
    EXPECT_EQ(key_in("Idempotency-Key:" + line + "\r\n"), trim(line).empty() ? "(invalid)" : "1");
  }
}

}  // namespace
}  // namespace einmal::http
