#include "einmal/gateway/config_schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "einmal/base/random.hpp"
#include "einmal/gateway/config_file.hpp"

/// Every key of the configuration file: kinds, bounds, where a mistake is reported.

namespace einmal {
namespace {

using ::testing::HasSubstr;

/// A key with values that are just inside and just outside of what it takes.
struct Bounds {
  std::string table, key;
  std::vector<std::string> accepted, refused;
};

const std::string text_list = R"(["a", "b"])";

/// `least` and `most` are accepted; what is below and above is not, nor what is no duration.
Bounds duration(const std::string& table, const std::string& key, const std::string& least,
                const std::string& most, const std::string& below, const std::string& above) {
  const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
  return {table,
          key,
          {quoted(least), quoted(most)},
          {quoted(below), quoted(above), "\"0s\"", "\"-1s\"", "\"5\"", "5", "\"1.5s\"", "\"1 s\"",
           "\"1S\"", "\"\"", "\"s\"", "true", "\"99999999999999999999s\"", "[\"1s\"]"}};
}
Bounds size(const std::string& table, const std::string& key, const std::string& least,
            const std::string& most, const std::string& below, const std::string& above) {
  const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
  return {table,
          key,
          {quoted(least), quoted(most)},
          {quoted(below), quoted(above), "\"0B\"", "1024", "\"1024\"", "\"1kB\"", "\"1 MiB\"",
           "\"-1MiB\"", "\"1.5MiB\"", "\"99999999999GiB\"", "false"}};
}
Bounds count(const std::string& table, const std::string& key, std::int64_t most) {
  return {table,
          key,
          {"1", std::to_string(most)},
          {"0", "-1", std::to_string(most + 1), "\"1\"", "1.5", "true", "[1]"}};
}
Bounds text(const std::string& table, const std::string& key, std::vector<std::string> accepted,
            std::vector<std::string> more_refused = {}) {
  std::vector<std::string> refused = {"\"\"", "1", "true", "[\"a\"]"};
  refused.insert(refused.end(), more_refused.begin(), more_refused.end());
  return {table, key, std::move(accepted), std::move(refused)};
}
Bounds choice(const std::string& table, const std::string& key, std::vector<std::string> accepted) {
  auto refused = std::vector<std::string>{"\"\"", "\"other\"", "1", "[]"};
  std::string upper = accepted.front();
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  if (upper != accepted.front()) refused.push_back(upper);
  return {table, key, std::move(accepted), std::move(refused)};
}
Bounds list(const std::string& table, const std::string& key, std::vector<std::string> accepted,
            std::vector<std::string> more_refused = {}) {
  std::vector<std::string> refused = {"\"a\"", "[1]", "[\"a\", 1]", "{ a = \"b\" }"};
  refused.insert(refused.end(), more_refused.begin(), more_refused.end());
  return {table, key, std::move(accepted), std::move(refused)};
}

std::vector<Bounds> gateway_bounds() {
  return {
      text("gateway", "listen", {"\"127.0.0.1:0\"", "\"[::1]:8080\"", "\"localhost:65535\""},
           {"\"8080\"", "\":8080\"", "\"a:65536\"", "\"::1:80\"", "\"a:b\"", "\"a:\""}),
      {"gateway",
       "upstream",
       {"\"http://a:1\"", "[\"http://a\", \"https://b\"]"},
       {"\"a:1\"", "\"ftp://a\"", "\"http://a/b\"", "\"http://u@a\"", "\"http://a:0\"", "[]", "[1]",
        "1", "[\"http://a\", \"http://a:80\"]", "\"http://127.0.0.1:8080\""}},
      text("gateway", "namespace", {"\"a\"", "\"" + std::string(1024, 'n') + "\""},
           {"\"a b\"", "\"\u00e4\"", "\"" + std::string(1025, 'n') + "\""}),
      duration("gateway", "drain", "1ms", "1h", "999us", "61m"),
      duration("gateway", "connect_timeout", "1ms", "5m", "999us", "301s"),
      duration("gateway", "answer_timeout", "1ms", "24h", "999us", "25h"),
      duration("gateway", "late_answer", "1ms", "24h", "999us", "25h"),
      duration("gateway", "upstream_idle", "1ms", "1h", "999us", "61m"),
      choice("gateway", "upstream_reuse", {"\"pooled\"", "\"never\""}),
      count("gateway", "upstream_connections", 65'536),
      list("gateway", "retired", {"[]", text_list}),
      {"gateway",
       "hosts",
       {"{ \"www.a.test\" = \"a.test\", \"b.test:81\" = \"a.test\" }", "{}"},
       {"[]", "\"a\"", "{ a = 1 }", "{ \"a b\" = \"c\" }", "{ a = \"b/c\" }",
        "{ a = \"c\", b = \"d\" }", "{ a = \"a\" }", "{ a = \"b\", b = \"c\" }"}},
      choice("gateway", "discovery", {"\"callers\"", "\"public\"", "\"off\""}),
      choice("gateway", "unmatched_key", {"\"pass\"", "\"refuse\""}),
      text("gateway", "documentation", {"\"https://a.test/problems/\"", "\"http://a/p#\""},
           {"\"a\"", "\"https://a.test/problems\"", "\"ftp://a/\"", "\"https://a b/\"",
            "\"https://a/>/\""}),
      choice("gateway", "dialect", {"\"ietf\"", "\"stripe\""}),
      text("gateway", "outcome_tokens", {"\"tokens\""}),
      {"gateway", "compress", {"true", "false"}, {"\"true\"", "1"}},
      text("tls", "certificate", {"\"a.pem\""}),
      text("tls", "key", {"\"a.pem\""}),
      text("tls", "client_ca", {"\"a.pem\""}),
      choice("tls", "minimum", {"\"1.2\"", "\"1.3\""}),
      text("upstream_tls", "ca", {"\"a.pem\""}),
      text("upstream_tls", "server_name", {"\"a.test\""}),
      text("upstream_tls", "certificate", {"\"a.pem\""}),
      text("upstream_tls", "key", {"\"a.pem\""}),
      {"upstream_tls", "verify", {"true", "false"}, {"\"true\"", "1", "[]"}},
      choice("upstream_tls", "minimum", {"\"1.2\"", "\"1.3\""}),
      text("store", "url", {"\"sqlite:a.db\"", "\"postgresql://a/b\""}),
      duration("store", "audit_retention", "1ms", "3660d", "999us", "3661d"),
      {"store",
       "accept_time",
       {"2026-03-29T12:00:00Z", "2026-03-29T12:00:00.5+02:00"},
       {"\"2026-03-29T12:00:00Z\"", "2026-03-29", "2026-03-29T12:00:00", "12:00:00", "1", "true"}},
  };
}

std::vector<Bounds> other_bounds() {
  return {
      text("caller", "source",
           {"\"header:X-Account\"", "\"fixed:me\"", "\"auth-request:http://a/check\""},
           {"\"header:\"", "\"header:a b\"", "\"header:Authorization\"", "\"header:cookie\"",
            "\"header:X-Api-Key\"", "\"header:Idempotency-Key\"", "\"header:idempotency_key\"",
            "\"fixed:\"", "\"jwt:\"", "\"jwt:sub\"", "\"mtls\"", "\"auth-request:\"",
            "\"auth-request:a\"", "\"bearer\"", "\"Header:X\""}),
      list("caller", "trusted_peers", {"[]", "[\"10.0.0.0/8\", \"::1\"]"},
           {"[\"10.0.0.0/33\"]", "[\"10.0.0.1/8\"]", "[\"a\"]"}),
      text("caller", "map", {"\"callers\""}),
      {"caller", "require", {"{ scope = \"pay\" }"}, {"[]", "\"a\"", "{ a = 1 }"}},
      text("caller", "answer_header", {"\"X-Account\""}, {"\"a b\""}),
      duration("caller", "positive_cache", "1ms", "1h", "999us", "61m"),
      text("caller", "keys", {"\"a.jwks\""}),
      list("caller", "algorithms", {"[\"RS256\", \"ES256\", \"EdDSA\", \"HS256\"]", "[]"},
           {"[\"none\"]", "[\"RS255\"]"}),
      text("caller", "issuer", {"\"https://a\""}),
      list("caller", "audiences", {text_list}),
      duration("caller", "leeway", "1ms", "10m", "999us", "601s"),
      text("metrics", "listen", {"\"127.0.0.1:0\"", "\"[::1]:9\""},
           {"\"9\"", "\"127.0.0.1:8080\""}),
      choice("log", "format", {"\"text\"", "\"json\""}),
      choice("log", "level", {"\"debug\"", "\"info\"", "\"warning\"", "\"error\""}),
      text("log", "file", {"\"einmal.log\""}),
      {"log", "requests", {"true", "false"}, {"\"true\"", "1", "[]"}},
      size("limits", "buffer_budget", "2MiB", "1024GiB", "1023KiB", "1025GiB"),
      count("limits", "connections", 1'000'000),
      {"limits",
       "waiters",
       {"16", "1000000"},
       {"0", "-1", "1000001", "\"16\"", "15"}},  // 15: fewer than waiters_per_key
      {"limits",
       "waiters_per_key",
       {"1", "1024"},
       {"0", "-1", "1000001", "\"16\"", "1025"}},  // 1025: more than waiters
      count("limits", "waiters_per_caller", 1'000'000),
      count("limits", "live_per_caller", 1'000'000'000'000),
      count("limits", "uncertain_per_caller", 1'000'000'000'000),
      size("limits", "head", "1KiB", "1MiB", "1023B", "1025KiB"),
      duration("limits", "head_time", "1ms", "1h", "999us", "61m"),
      duration("limits", "body_time", "1ms", "1h", "999us", "61m"),
      size("limits", "body_rate", "1B", "1GiB", "0B", "2GiB"),
      duration("limits", "keep_alive_time", "1ms", "24h", "999us", "25h"),
      list("cors", "origins", {"[\"*\"]", "[\"https://a.test\", \"http://b:81\"]"},
           {"[]", "[\"a.test\"]", "[\"https://a.test/\"]", "[\"null\"]"}),
      list("cors", "methods", {"[\"POST\"]"}, {"[\"PO ST\"]"}),
      list("cors", "headers", {"[\"X-A\"]"}, {"[\"X A\"]"}),
      list("cors", "expose", {"[\"X-A\"]"}, {"[\"X:A\"]"}),
      {"cors", "credentials", {"true", "false"}, {"\"true\"", "1"}},
      duration("cors", "max_age", "1s", "24h", "999ms", "25h"),
  };
}

std::vector<Bounds> operation_bounds() {
  const std::string table = "operation";
  return {
      text(table, "name", {"\"a\"", "\"" + std::string(1024, 'n') + "\""},
           {"\"a b\"", "\"" + std::string(1025, 'n') + "\""}),
      text(table, "title", {"\"Any text\""}),
      text(table, "match", {"\"POST /a\"", "\"PUT /a/{id}\"", "\"PURGE /\""},
           {"\"POST\"", "\"/a\"", "\"POST a\"", "\"GET /a\"", "\"HEAD /a\"", "\"OPTIONS /a\"",
            "\"TRACE /a\"", "\"CONNECT /a\"", "\"post /a\"", "\"POST /a/\"", "\"POST /a//b\"",
            "\"POST /a?b\"", "\"POST /{a\"", "\"POST /{a}/{a}\"", "\"POST  /a\"", "\"P(ST /a\""}),
      choice(table, "key", {"\"required\"", "\"optional\""}),
      text(table, "key_header", {"\"Request-Token\""},
           {"\"a b\"", "\"Authorization\"", "\"Cookie\"", "\"Host\"", "\"Content-Length\"",
            "\"Transfer-Encoding\"", "\"Connection\"", "\"Einmal-Key\"", "\"Idempotency-Status\"",
            "\"X-Caller\"", "\"x_caller\""}),
      list(table, "key_aliases", {"[\"X-Idempotency-Key\", \"PayPal-Request-Id\"]", "[]"},
           {"[\"a b\"]", "[\"Idempotency-Key\"]", "[\"X\", \"x\"]", "[\"X-Caller\"]"}),
      text(table, "key_member", {"\"/key\""}, {"\"key\""}),
      choice(table, "in_flight", {"\"reject\"", "\"wait\"", "\"operation\""}),
      duration(table, "wait", "1ms", "1h", "999us", "61m"),
      duration(table, "lease", "100ms", "24h", "99ms", "25h"),
      choice(table, "on_lease_expiry", {"\"uncertain\"", "\"takeover\""}),
      duration(table, "retention", "1ms", "3660d", "999us", "3661d"),
      choice(table, "after_expiry", {"\"new\"", "\"refuse\""}),
      duration(table, "tombstone", "1ms", "400d", "999us", "401d"),     // audit_retention is 400d
      size(table, "max_request_body", "1B", "255MiB", "0B", "256MiB"),  // the budget is 256MiB
      size(table, "max_stored_body", "1B", "255MiB", "0B", "2GiB"),
      {table,
       "fingerprint",
       {"{ headers = [\"X-Currency\"] }", "{ ignore = [\"/a\"] }", "{ only = [\"/a/b\"] }",
        "{ nfc = true }",
        "{ defaults = { \"/a\" = \"b\", \"/c\" = 1, \"/d\" = 1.5, \"/e\" = true } }"},
       {"[]", "\"a\"", "{ header = [\"A\"] }", "{ headers = [\"a b\"] }",
        "{ headers = [\"Authorization\"] }", "{ headers = [\"Accept\"] }", "{ ignore = [\"a\"] }",
        "{ only = [\"a\"] }", "{ nfc = 1 }", "{ defaults = { a = 1 } }", "{ defaults = [] }",
        "{ defaults = { \"/a\" = [] } }", "{ defaults = { \"/a\" = nan } }"}},
      choice(table, "upstream_key", {"\"original\"", "\"derived\"", "\"none\""}),
      {table,
       "outcomes",
       {"{ 503 = \"released\", 200 = \"failed\", 599 = \"completed\", 409 = \"uncertain\" }", "{}"},
       {"{ 199 = \"failed\" }", "{ 600 = \"failed\" }", "{ 5xx = \"failed\" }",
        "{ 503 = \"free\" }", "{ 503 = 1 }", "[]", "{ 201 = \"released\" }",
        "{ 50 = \"failed\" }"}},
      choice(table, "replay", {"\"stored\"", "\"resource\""}),
      list(table, "unstored_headers", {"[\"X-Request-Id\"]", "[]"}, {"[\"a b\"]"}),
      {table, "uncertain_status", {"504", "409"}, {"408", "410", "500", "505", "\"504\""}},
      duration(table, "store_grace", "1ms", "29s", "999us", "30s"),  // the lease is 30s
      choice(table, "on_store_failure", {"\"closed\"", "\"open\""}),
      text(table, "authorize", {"\"auth-request:https://a/check\""},
           {"\"https://a/check\"", "\"auth-request:\"", "\"auth-request:a\""}),
      {table,
       "reconcile",
       {"{ request = \"GET /a?k={key}\", completed = [\"200 /state = \\\"paid\\\"\"], "
        "failed = [\"410\"], failed_status = 402, status = 201, result = \"/orders/0\", location = "
        "\"/orders/{/id}\" }",
        "{ request = \"GET /a/{operation-id}\", completed = [\"200 /done\"] }"},
       {"[]", "{ request = \"POST /a\", completed = [\"200\"] }", "{ completed = [\"200\"] }",
        "{ request = \"GET /a\" }", "{ request = \"GET /a\", completed = [\"2xx\"] }",
        "{ request = \"GET /a\", completed = [\"200\"], failed = [\"200\"] }",
        "{ request = \"GET /a?k={key}\", completed = [\"200 state = 1\"] }",
        "{ request = \"GET /a\", completed = [\"200 /state = paid\"] }",
        "{ request = \"GET /a?k={key}\", absent = [\"404\"] }",
        "{ request = \"GET /a?k={key}\", done = [] }",
        "{ request = \"GET /a\", completed = [\"200\"] }",
        "{ request = \"GET /a?k={name}\", completed = [\"200\"] }",
        "{ request = \"GET /a?k={key\", completed = [\"200\"] }",
        "{ request = \"GET /a?k={key}\", failed = [\"404\"] }",
        "{ request = \"GET /a?k={key}\", completed = [\"200\"], status = 400 }",
        "{ request = \"GET /a?k={key}\", failed = [\"404\"], failed_status = 500 }",
        "{ request = \"GET /a?k={key}\", completed = [\"200\"], result = \"a\" }",
        "{ request = \"GET /a?k={key}\", completed = [\"200\"], location = \"/a/{id}\" }",
        "{ request = \"GET /a?k={key}\", completed = [\"200\"], credentials = \"/not/there\" }"}},
      duration(table, "quiescence", "1ms", "3660d", "999us", "3661d"),
      duration(table, "connect_timeout", "1ms", "5m", "999us", "301s"),
      duration(table, "answer_timeout", "1ms", "24h", "999us", "25h"),
      duration(table, "late_answer", "1ms", "24h", "999us", "25h"),
  };
}

std::vector<Bounds> all_bounds() {
  auto all = gateway_bounds();
  for (const auto& more : {other_bounds(), operation_bounds()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// What must stand beside a key so that it alone decides.
std::map<std::string, std::string> beside(const Bounds& of) {
  std::map<std::string, std::string> tables = {
      {"gateway", "upstream = \"http://127.0.0.1:9000\"\n"}};
  tables["operation"] = "name = \"pay\"\nmatch = \"POST /pay\"\n";
  if (of.table == "tls") tables["tls"] = "certificate = \"c\"\nkey = \"k\"\n";
  if (of.table == "cors") tables["cors"] = "origins = [\"https://a.test\"]\n";
  if (of.table == "upstream_tls") {
    tables["gateway"] = "upstream = \"https://a\"\n";
    if (of.key == "certificate") tables["upstream_tls"] = "key = \"k\"\n";
    if (of.key == "key") tables["upstream_tls"] = "certificate = \"c\"\n";
  }
  if (of.table == "caller") {
    const std::set<std::string> jwt = {"require", "keys",      "algorithms",
                                       "issuer",  "audiences", "leeway"};
    if (jwt.count(of.key) != 0) tables["caller"] = "source = \"jwt:sub\"\nkeys = \"k\"\n";
    if (of.key == "answer_header" || of.key == "positive_cache") {
      tables["caller"] = "source = \"auth-request:http://a/check\"\n";
    }
  }
  if (of.key == "tombstone") tables["operation"] += "after_expiry = \"refuse\"\n";
  return tables;
}

/// A whole file in which `of` has `value`, and the line that it stands on.
std::pair<std::string, int> file_with(const Bounds& of, const std::string& value) {
  auto tables = beside(of);
  auto& lines = tables[of.table];
  if (const auto at = lines.rfind(of.key + " = ", 0);
      at == 0 || lines.find("\n" + of.key + " = ") != std::string::npos) {
    const auto begin = at == 0 ? 0 : lines.find("\n" + of.key + " = ") + 1;
    lines.erase(begin, lines.find('\n', begin) + 1 - begin);
  }
  lines += of.key + " = " + value + "\n";
  std::string text;
  int line = 0;
  for (const auto& [name, content] : tables) {
    text += name == "operation" ? "[[operation]]\n" : "[" + name + "]\n";
    text += content;
    if (name == of.table) line = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  return {text, line};
}

TEST(ConfigSchema, takes_values_within_the_bounds_of_each_key) {
  for (const auto& of : all_bounds()) {
    for (const auto& value : of.accepted) {
      const auto [text, line] = file_with(of, value);
      const auto config = parse_config(text, "f.toml");
      EXPECT_TRUE(config) << text << config.error().message;
    }
  }
}

TEST(ConfigSchema, refuses_values_outside_of_them_and_names_line_and_key) {
  for (const auto& of : all_bounds()) {
    for (const auto& value : of.refused) {
      const auto [text, line] = file_with(of, value);
      const auto config = parse_config(text, "f.toml");
      ASSERT_FALSE(config) << text;
      const auto& message = config.error().message;
      EXPECT_THAT(message, HasSubstr("f.toml:" + std::to_string(line) + ": ")) << text;
      EXPECT_THAT(message, HasSubstr(of.key)) << text;
    }
  }
}

TEST(ConfigSchema, has_bounds_in_this_test_for_each_key) {
  std::set<std::string> tested, known;
  for (const auto& of : all_bounds()) tested.insert(of.table + "." + of.key);
  for (const auto& section : gateway::sections()) {
    for (const auto& setting : section.settings) {
      known.insert(std::string(section.name) + "." + std::string(setting.key));
    }
  }
  for (const auto* settings :
       {&gateway::own_operation_settings(), &gateway::operation_settings()}) {
    for (const auto& setting : *settings) known.insert("operation." + std::string(setting.key));
  }
  EXPECT_EQ(tested, known);
}

TEST(ConfigSchema, refuses_unknown_keys_in_each_table) {
  for (const auto* table : {"gateway", "tls", "upstream_tls", "store", "caller", "metrics", "log",
                            "limits", "cors", "defaults", "operation"}) {
    const Bounds unknown{table, "no_such_setting", {}, {}};
    const auto [text, line] = file_with(unknown, "1");
    const auto config = parse_config(text, "f.toml");
    ASSERT_FALSE(config) << text;
    EXPECT_THAT(config.error().message, HasSubstr("f.toml:" + std::to_string(line) + ": ")) << text;
    EXPECT_THAT(config.error().message, HasSubstr("no_such_setting: no such setting")) << text;
  }
}

/// "table.key" -> default, as docs/configuration.md has them.
std::map<std::string, std::string> documented_defaults() {
  std::ifstream in(std::string(EINMAL_SOURCE_DIR) + "/docs/configuration.md");
  std::map<std::string, std::string> found;
  std::string table;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("## [[operation]]", 0) == 0) {
      table = "operation";
    } else if (line.rfind("## [", 0) == 0) {
      table = line.substr(4, line.find(']') - 4);
    }
    if (line.rfind("| `", 0) != 0) continue;
    const auto key = line.substr(3, line.find('`', 3) - 3);
    const auto begin = line.find("| ", 3) + 2;
    auto value = line.substr(begin, line.find(" |", begin) - begin);
    value.erase(std::remove(value.begin(), value.end(), '`'), value.end());
    found[table + "." + key] = value;
  }
  return found;
}

TEST(ConfigSchema, is_what_the_documentation_says) {
  std::map<std::string, std::string> known;
  GatewayConfig config;
  for (const auto& section : gateway::sections()) {
    section.make(config);
    for (const auto& setting : section.settings) {
      known[std::string(section.name) + "." + std::string(setting.key)] = setting.show(config);
    }
  }
  known["gateway.upstream"] = known["metrics.listen"] = "-";
  const OperationConfig operation;
  for (const auto* settings :
       {&gateway::own_operation_settings(), &gateway::operation_settings()}) {
    for (const auto& setting : *settings) {
      known["operation." + std::string(setting.key)] = setting.show(operation);
    }
  }
  known["operation.match"] = "-";
  EXPECT_EQ(documented_defaults(), known);
}

TEST(ConfigSchema, survives_a_damaged_file) {
  std::string whole;
  for (const auto& of : all_bounds()) {
    if (of.table == "operation") whole = file_with(of, of.accepted.front()).first;
  }
  whole +=
      "[[operation]]\nname = \"b\"\nmatch = \"PUT /b/{id}\"\noutcomes = { 503 = "
      "\"released\" }\nfingerprint = { defaults = { \"/a\" = 1 } }\n[limits]\nhead = "
      "\"8KiB\"\n[store]\naccept_time = 2026-03-29T12:00:00Z\n";
  ASSERT_TRUE(parse_config(whole, "f.toml")) << whole;
  const auto seed = SystemRandom().below(UINT64_MAX);
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  for (int round = 0; round < 3000; ++round) {
    auto text = whole;
    for (auto edits = 1 + random.below(3); edits > 0; --edits) {
      const auto at = random.below(text.size());
      const char c = std::string_view("\n\"[]{}=.,0 aZ#-\\\x80")[random.below(17)];
      if (random.below(2) == 0)
        text[at] = c;
      else
        text.erase(at, 1 + random.below(4));
    }
    const auto config = parse_config(text, "f.toml");
    if (config) {
      EXPECT_TRUE(check_config(*config)) << text;
    } else {
      EXPECT_EQ(config.error().message.rfind("f.toml:", 0), 0U) << text;
    }
  }
}

/// A value that a setting does not have by default, in two places, must come out of both.
TEST(ConfigSchema, shows_what_was_read) {
  for (const auto& of : operation_bounds()) {
    if (of.key == "name" || of.key == "match" || of.key == "title") continue;
    const auto text = file_with(of, of.accepted.front()).first;
    const auto read = parse_config_with_origins(text, "f.toml");
    ASSERT_TRUE(read) << read.error().message;
    const auto explained = explain_config(read->config, read->origins);
    EXPECT_THAT(explained, HasSubstr("\n" + of.key + " ")) << explained;
  }
}

}  // namespace
}  // namespace einmal
