#include "einmal/gateway/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "einmal/gateway/config_tree.hpp"

namespace einmal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

const std::string minimal = "[gateway]\nupstream = \"http://127.0.0.1:9000\"\n";

GatewayConfig accepted(const std::string& toml) {
  auto config = parse_config(toml, "f.toml");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : GatewayConfig{};
}

std::string refused(const std::string& toml) {
  const auto config = parse_config(toml, "f.toml");
  EXPECT_FALSE(config) << toml;
  return config ? std::string() : config.error().message;
}

bool parse_toml_accepts(const std::string& text) {
  const auto parsed = gateway::parse_toml(text, "explained");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed.has_value();
}

TEST(ConfigFile, fills_in_the_contracts_defaults) {
  const auto config = accepted(minimal + "[[operation]]\nname = \"pay\"\nmatch = \"POST /pay\"\n");
  EXPECT_EQ(config.listen, (HostPort{"127.0.0.1", 8080}));
  EXPECT_EQ(config.store_url, "sqlite:einmal.db");
  EXPECT_EQ(config.drain, 30s);
  ASSERT_EQ(config.operations.size(), 1u);
  const auto& pay = config.operations[0];
  EXPECT_TRUE(pay.key.required);
  EXPECT_EQ(pay.in_flight, InFlight::reject);
  EXPECT_EQ(pay.policies.lease, Duration(30s));
  EXPECT_EQ(pay.policies.retention, 24h);
  EXPECT_EQ(pay.policies.on_lease_expiry, OnLeaseExpiry::uncertain);
  EXPECT_EQ(pay.times.answer, 60s);
}

TEST(ConfigFile, reads_the_example_of_the_contract) {
  const auto config = accepted(R"(
[gateway]
listen = "127.0.0.1:8080"
upstream = "http://127.0.0.1:9000"
answer_timeout = "20s"
retired = ["old"]
hosts = { "www.shop.test" = "shop.test" }
[store]
url = "sqlite:einmal.db"
[caller]
source = "header:X-Caller"
trusted_peers = ["10.0.0.0/8"]
[metrics]
listen = "127.0.0.1:9464"
[limits]
buffer_budget = "256MiB"
connections = 10000
[defaults]
key = "optional"
in_flight = "wait"
wait = "7s"
lease = "20s"
retention = "48h"
max_request_body = "2MiB"
[[operation]]
name = "create-order"
title = "Create an order"
match = "POST /orders"
retention = "72h"
outcomes = { 503 = "released" }
fingerprint = { headers = ["X-Currency"], ignore = ["/sent_at"], defaults = { "/currency" = "usd", "/count" = 1 } }
[[operation]]
name = "refund"
match = "POST /orders/{id}/refunds"
key = "required"
answer_timeout = "5s"
)");
  EXPECT_EQ(config.metrics, (HostPort{"127.0.0.1", 9464}));
  EXPECT_THAT(config.retired, ElementsAre("old"));
  EXPECT_EQ(config.hosts.at("www.shop.test"), "shop.test");
  EXPECT_THAT(config.caller.trusted_peers, ElementsAre("10.0.0.0/8"));
  ASSERT_EQ(config.operations.size(), 2u);
  const auto& create = config.operations[0];
  EXPECT_FALSE(create.key.required);
  EXPECT_EQ(create.wait, 7s);
  EXPECT_EQ(create.policies.lease, Duration(20s));
  EXPECT_EQ(create.policies.retention, 72h);
  EXPECT_EQ(create.max_request_body, std::size_t{2} << 20);
  EXPECT_EQ(create.times.answer, 20s) << "the gateway's, since the operation has none of its own";
  EXPECT_EQ(create.outcomes.at(503), DeclaredOutcome::released);
  EXPECT_THAT(create.fingerprint.headers, ElementsAre("X-Currency"));
  EXPECT_EQ(create.fingerprint.defaults.at("/currency"), "\"usd\"");
  EXPECT_EQ(create.fingerprint.defaults.at("/count"), "1");
  const auto& refund = config.operations[1];
  EXPECT_TRUE(refund.key.required);
  EXPECT_EQ(refund.policies.retention, 48h);
  EXPECT_EQ(refund.times.answer, 5s);
}

TEST(ConfigFile, names_the_line_of_each_thing_that_is_wrong) {
  const auto message = refused(minimal +
                               "lissten = \"127.0.0.1:1\"\n"  // line 3
                               "drain = \"30\"\n"             // line 4
                               "[limits]\n"
                               "connections = -1\n"  // line 6
                               "[defaults]\n"
                               "lease = \"0s\"\n");  // line 8
  EXPECT_THAT(message, HasSubstr("f.toml:3: [gateway] lissten: no such setting"));
  EXPECT_THAT(message, HasSubstr("listen"));
  EXPECT_THAT(message, HasSubstr("f.toml:4: [gateway] drain: '30' is not a duration"));
  EXPECT_THAT(message, HasSubstr("f.toml:6: [limits] connections"));
  EXPECT_THAT(message, HasSubstr("f.toml:8: [defaults] lease: 0s is too small"));
}

TEST(ConfigFile, refuses_what_is_no_toml_and_unknown_sections) {
  EXPECT_THAT(refused("[gateway\n"), HasSubstr("f.toml:1:"));
  EXPECT_THAT(refused(minimal + "[gatewy]\na = 1\n"), HasSubstr("gatewy"));
  EXPECT_THAT(refused(minimal + "[operation]\nname = \"x\"\n"), HasSubstr("two brackets"));
}

TEST(ConfigFile, refuses_values_of_the_wrong_kind_or_out_of_bounds) {
  for (const auto* line :
       {"drain = 30", "drain = \"-1s\"", "drain = \"1.5s\"", "drain = \"1 s\"", "drain = \"2h\"",
        "upstream_connections = 0", "upstream_connections = \"256\"", "upstream_idle = \"0s\"",
        "upstream_reuse = \"sometimes\"", "listen = \"8080\"", "listen = \":8080\"",
        "listen = \"127.0.0.1:70000\"", "retired = \"old\"", "retired = [1]", "hosts = [\"a\"]",
        "discovery = true", "namespace = \"\"", "drain = \"99999999999999999999s\""}) {
    EXPECT_THAT(refused(minimal + line + "\n"), HasSubstr("f.toml:3: ")) << line;
  }
  for (const auto* upstream : {"127.0.0.1:9000", "ftp://a", "http://a/path", "http://u@a",
                               "http://", "http://a:0", "http://a:b"}) {
    EXPECT_THAT(refused("[gateway]\nupstream = \"" + std::string(upstream) + "\"\n"),
                HasSubstr("f.toml:2: "))
        << upstream;
  }
}

TEST(ConfigFile, refuses_operations_that_cannot_be_protected_or_told_apart) {
  const auto with = [](const std::string& lines) { return minimal + "[[operation]]\n" + lines; };
  EXPECT_THAT(refused(with("name = \"a\"\nmatch = \"GET /a\"\n")), HasSubstr("passes through"));
  EXPECT_THAT(refused(with("name = \"a\"\nmatch = \"/a\"\n")), HasSubstr("method and a path"));
  EXPECT_THAT(refused(with("name = \"a\"\n")), HasSubstr("match"));
  EXPECT_THAT(refused(with("match = \"POST /a\"\n")), HasSubstr("name"));
  EXPECT_THAT(refused(with("name = \"a\"\nmatch = \"POST a\"\n")), HasSubstr("match"));
  const std::string second = "[[operation]]\nname = \"b\"\nmatch = ";
  const auto first = with("name = \"a\"\nmatch = \"POST /orders/{id}\"\n");
  EXPECT_THAT(refused(first + second + "\"POST /orders/new\"\n"),
              HasSubstr("f.toml:8: operation \"b\" match: POST /orders/new and /orders/{id} of "
                        "\"a\" match the same request"));
  accepted(first + second + "\"PUT /orders/new\"\n");
  EXPECT_THAT(refused(first + "[[operation]]\nname = \"a\"\nmatch = \"PUT /x\"\n"),
              HasSubstr("is taken"));
}

TEST(ConfigFile, refuses_unsafe_combinations) {
  const auto with = [](const std::string& lines) {
    return minimal + "[[operation]]\nname = \"a\"\nmatch = \"POST /a\"\n" + lines;
  };
  EXPECT_THAT(refused(with("on_store_failure = \"open\"\non_lease_expiry = \"takeover\"\n")),
              HasSubstr("choose one"));
  EXPECT_THAT(refused(with("lease = \"5s\"\nstore_grace = \"5s\"\n")), HasSubstr("store_grace"));
  EXPECT_EQ(accepted(with("lease = \"4s\"\n")).operations[0].store_grace, 2s)
      << "the default gives way to a short lease";
  EXPECT_THAT(refused(with("uncertain_status = 500\n")), HasSubstr("504 or 409"));
  EXPECT_THAT(refused(with("reconcile = { request = \"GET /a?key={key}\", absent = [\"404\"] }\n")),
              HasSubstr("quiescence"));
  EXPECT_THAT(refused(with("key_header = \"Authorization\"\n")), HasSubstr("credentials"));
  EXPECT_THAT(refused(minimal + "[caller]\nsource = \"header:Authorization\"\n"),
              HasSubstr("credential"));
  EXPECT_THAT(refused(minimal + "[caller]\ntrusted_peers = [\"10.0.0.0/99\"]\n"),
              HasSubstr("trusted_peers"));
  EXPECT_THAT(refused(minimal + "[caller]\nsource = \"bearer\"\n"), HasSubstr("header:NAME"));
  EXPECT_THAT(refused("[gateway]\n"), HasSubstr("upstream"));
}

TEST(ConfigFile, refuses_settings_that_contradict_each_other_wherever_they_stand) {
  const auto operation = [](const std::string& lines) {
    return "[[operation]]\nname = \"a\"\nmatch = \"POST /a\"\n" + lines;
  };
  // The line is that of the setting, also where it was inherited.
  EXPECT_THAT(
      refused(minimal + "[defaults]\nlease = \"4s\"\nstore_grace = \"5s\"\n" + operation("")),
      HasSubstr("f.toml:5: operation \"a\" store_grace"));
  EXPECT_THAT(refused(minimal + "[defaults]\non_store_failure = \"open\"\n" +
                      operation("on_lease_expiry = \"takeover\"\n")),
              HasSubstr("f.toml:8: operation \"a\" on_store_failure"));
  EXPECT_THAT(refused(minimal + "[store]\naudit_retention = \"20d\"\n" +
                      operation("after_expiry = \"refuse\"\n")),
              HasSubstr("f.toml:8: operation \"a\" tombstone"));
  EXPECT_THAT(refused(minimal + "[limits]\nbuffer_budget = \"1MiB\"\n" + operation("")),
              HasSubstr("f.toml:4: operation \"a\" max_request_body"));
  EXPECT_THAT(refused(minimal + "retired = [\"a\"]\n" + operation("")),
              HasSubstr("f.toml:3: [gateway] retired"));
  EXPECT_THAT(refused(minimal + "[caller]\nsource = \"mtls\"\n[tls]\ncertificate = \"c\"\n"),
              HasSubstr("client_ca"));
  EXPECT_THAT(refused(minimal + "[tls]\ncertificate = \"c\"\n"), HasSubstr("f.toml:3: [tls] key"));
  EXPECT_THAT(refused("[gateway]\nupstream = \"https://a\"\n[upstream_tls]\nkey = \"k\"\n"),
              HasSubstr("f.toml:4: [upstream_tls] key: certificate and key"));
  EXPECT_THAT(refused(minimal + "[cors]\norigins = [\"*\"]\ncredentials = true\n"),
              HasSubstr("f.toml:5: [cors] credentials"));
  EXPECT_THAT(refused(minimal + "[cors]\ncredentials = true\n"), HasSubstr("[cors] origins"));
  EXPECT_THAT(refused(minimal + "listen = \"127.0.0.1:1\"\n[metrics]\nlisten = "
                                "\"127.0.0.1:1\"\n"),
              HasSubstr("f.toml:5: [metrics] listen"));
  accepted(minimal + "listen = \"127.0.0.1:0\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n");
}

TEST(ConfigFile, refuses_settings_without_effect_since_somebody_meant_something_else) {
  const auto caller = [](const std::string& lines) { return minimal + "[caller]\n" + lines; };
  for (const auto* line : {"keys = \"k\"", "algorithms = []", "issuer = \"i\"",
                           "audiences = [\"a\"]", "leeway = \"1s\"", "require = { a = \"b\" }",
                           "answer_header = \"X\"", "positive_cache = \"1s\""}) {
    EXPECT_THAT(refused(caller(std::string(line) + "\n")), HasSubstr("f.toml:4: [caller] "))
        << line;
  }
  EXPECT_THAT(refused(caller("source = \"fixed:a\"\ntrusted_peers = []\n")),
              HasSubstr("f.toml:5: [caller] trusted_peers"));
  EXPECT_THAT(refused(caller("source = \"fixed:a\"\nmap = \"f\"\n")),
              HasSubstr("f.toml:5: [caller] map"));
  accepted(caller("source = \"header:Authorization\"\nmap = \"f\"\n"));
  EXPECT_THAT(refused(minimal + "[upstream_tls]\nca = \"c\"\n"),
              HasSubstr("f.toml:3: [upstream_tls]"));
  EXPECT_THAT(refused(minimal + "[defaults]\ntombstone = \"1d\"\n"),
              HasSubstr("f.toml:4: [defaults] tombstone"));
  EXPECT_THAT(refused(minimal + "[[operation]]\nname = \"a\"\nmatch = \"POST /a\"\n"
                                "tombstone = \"1d\"\n"),
              HasSubstr("f.toml:6: "));
  accepted(minimal + "[defaults]\ntombstone = \"1d\"\nafter_expiry = \"refuse\"\n");
}

TEST(ConfigFile, tells_all_mistakes_at_once_in_the_order_of_the_file_and_each_once) {
  const auto message = refused(
      "[gateway]\nlisten = 1\nupstream = \"x\"\n[limits]\nhead = \"1\"\n"
      "[[operation]]\nname = \"a b\"\nmatch = \"GET /a\"\nlease = \"1\"\nretention = 3\n");
  std::vector<std::string> starts;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    starts.push_back(line.substr(0, line.find(": ")));
  }
  EXPECT_THAT(starts, ElementsAre("f.toml:2", "f.toml:3", "f.toml:5", "f.toml:7", "f.toml:8",
                                  "f.toml:9", "f.toml:10"))
      << message;
}

TEST(ConfigFile, gives_the_built_in_operation_what_defaults_say) {
  const auto config = accepted(minimal + "[defaults]\nretention = \"48h\"\nlease = \"2s\"\n");
  EXPECT_FALSE(config.built_in.key.required);
  EXPECT_EQ(config.built_in.in_flight, InFlight::wait);
  EXPECT_EQ(config.built_in.wait, 5s);
  EXPECT_EQ(config.built_in.policies.retention, 48h);
  EXPECT_EQ(config.built_in.store_grace, 1s);
  EXPECT_TRUE(accepted(minimal + "[defaults]\nkey = \"required\"\n").built_in.key.required);
  EXPECT_THAT(refused(minimal + "[defaults]\nlease = \"4s\"\nstore_grace = \"4s\"\n"),
              HasSubstr("f.toml:5: [defaults] store_grace"));
}

TEST(ConfigCheck, checks_configurations_that_come_from_no_file) {
  GatewayConfig config;
  EXPECT_THAT(check_config(config).error().message, HasSubstr("[gateway] upstream"));
  config.upstream.addresses = {UpstreamAddress{false, {"127.0.0.1", 9000}}};
  EXPECT_TRUE(check_config(config));
  OperationConfig operation;
  operation.name = "pay";
  operation.match = {"GET", "/pay"};
  config.operations = {operation, operation};
  const auto message = check_config(config).error().message;
  EXPECT_THAT(message, HasSubstr("operation \"pay\" match: GET has no effect"));
  EXPECT_THAT(message, HasSubstr("operation \"pay\" name: the name \"pay\" is taken"));
  EXPECT_THAT(message, HasSubstr("match the same request"));
}

TEST(ConfigExplain, says_every_value_and_where_it_came_from) {
  const auto read = parse_config_with_origins(
      "[gateway]\nupstream = \"http://a\"\nanswer_timeout = \"20s\"\n"
      "[store]\nurl = \"postgresql://me:secret@db/x?password=secret\"\n"
      "[defaults]\nretention = \"48h\"\n"
      "[[operation]]\nname = \"pay\"\nmatch = \"POST /pay\"\nlease = \"4s\"\n"
      "outcomes = { 503 = \"released\", 500 = \"uncertain\" }\n",
      "f.toml");
  ASSERT_TRUE(read) << read.error().message;
  const auto text = explain_config(read->config, read->origins);
  const auto line = [&](const std::string& start) {
    const auto at = text.rfind("\n" + start + " ");
    if (at == std::string::npos) return "no line " + start;
    std::string found;
    for (const char c : text.substr(at + 1, text.find('\n', at + 1) - at - 1)) {
      if (c != ' ' || found.back() != ' ') found += c;
    }
    return found;
  };
  EXPECT_EQ(line("drain"), "drain = \"30s\" # default");
  EXPECT_EQ(line("answer_timeout"), "answer_timeout = \"20s\" # [gateway] f.toml:3");
  EXPECT_EQ(line("retention"), "retention = \"2d\" # [defaults] f.toml:7");
  EXPECT_EQ(line("lease"), "lease = \"4s\" # f.toml:11");
  EXPECT_EQ(line("store_grace"), "store_grace = \"2s\" # default: half the lease");
  EXPECT_EQ(line("# quiescence"), "# quiescence = - # default");
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_EQ(line("#   completed"), "# completed 200-306 309-399");
  EXPECT_EQ(line("#   failed,"), "# failed, unknown -");
  EXPECT_EQ(line("#   uncertain"), "# uncertain 408 500 502 504-599 and anything else");
  EXPECT_THAT(line("#   released"), HasSubstr(" 501 503"));
}

TEST(ConfigExplain, shows_the_built_in_operation_where_none_is_configured) {
  const auto config = accepted(minimal);
  const auto text = explain_config(config, {});
  EXPECT_THAT(text, HasSubstr("every POST and PATCH"));
  EXPECT_THAT(text, HasSubstr("\"optional\""));
  EXPECT_TRUE(parse_toml_accepts(text)) << text;
}

TEST(ConfigText, reads_durations_sizes_and_addresses) {
  EXPECT_EQ(parse_duration("250ms"), Duration(250ms));
  EXPECT_EQ(parse_duration("30d"), Duration(720h));
  EXPECT_FALSE(parse_duration("5"));
  EXPECT_FALSE(parse_duration(""));
  EXPECT_FALSE(parse_duration("9223372036854775807s"));
  EXPECT_EQ(parse_size("64KiB"), std::size_t{65536});
  EXPECT_FALSE(parse_size("64kb"));
  EXPECT_EQ(*parse_host_port("[::1]:80"), (HostPort{"::1", 80}));
  EXPECT_FALSE(parse_host_port("::1:80"));
  EXPECT_EQ(parse_upstream("https://api.test")->address, (HostPort{"api.test", 443}));
  EXPECT_EQ(parse_upstream("http://[::1]:81/")->address, (HostPort{"::1", 81}));
}

TEST(ConfigFile, that_cannot_be_read_says_so) {
  const auto config = read_config("/no/such/file.toml");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("/no/such/file.toml"));
}

}  // namespace
}  // namespace einmal
