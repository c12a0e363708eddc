#include "einmal/gateway/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace einmal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
