#include "einmal/gateway/config_schema.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "einmal/gateway/config_settings.hpp"
#include "einmal/http/http_date.hpp"
#include "einmal/http/json_text.hpp"

namespace einmal::gateway {

namespace {

using Kind = ConfigNode::Kind;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr Duration shortest = milliseconds(1);
constexpr Duration a_day = hours(24);
constexpr Duration ten_years = hours(24 * 3660);
constexpr std::size_t a_mib = std::size_t{1} << 20;
constexpr std::size_t a_gib = std::size_t{1} << 30;

// --- [gateway] and the other tables ---------------------------------------------------------

void read_upstream(const ConfigNode& node, GatewayConfig& config, const Complain& complain) {
  std::vector<ConfigNode> urls = node.items;
  if (node.kind == Kind::text) urls = {node};
  if ((node.kind != Kind::text && node.kind != Kind::list) || urls.empty()) {
    return complain(node, "a URL or a list of URLs is needed");
  }
  config.upstream.addresses.clear();
  for (const auto& url : urls) {
    const auto address = parse_upstream(url.text);
    if (!address) {
      complain(url, address.error().message);
      continue;
    }
    const auto& before = config.upstream.addresses;
    if (std::find(before.begin(), before.end(), *address) != before.end()) {
      complain(url, show(*address) + " stands twice");
    }
    config.upstream.addresses.push_back(*address);
  }
}

std::string show_upstream(const GatewayConfig& config) {
  std::vector<std::string> urls;
  for (const auto& address : config.upstream.addresses) urls.push_back(show(address));
  return urls.size() == 1 ? show(urls.front()) : show(urls);
}

template <class Config, class Access>
void add_times(Settings<Config>& settings, Access times) {
  settings.duration(
      "connect_timeout", [=](auto& c) -> auto& { return times(c).connect; }, shortest, minutes(5));
  settings.duration(
      "answer_timeout", [=](auto& c) -> auto& { return times(c).answer; }, shortest, a_day);
  settings.duration(
      "late_answer", [=](auto& c) -> auto& { return times(c).late_answer; }, shortest, a_day);
}

std::vector<Setting<GatewayConfig>> gateway_settings() {
  Settings<GatewayConfig> settings;
  settings
      .parsed(
          "listen", [](auto& c) -> auto& { return c.listen; }, parse_host_port)
      .add("upstream", read_upstream, show_upstream)
      .text(
          "namespace", [](auto& c) -> auto& { return c.name_space; })
      .duration(
          "drain", [](auto& c) -> auto& { return c.drain; }, shortest, hours(1));
  add_times(
      settings, [](auto& c) -> auto& { return c.times; });
  settings
      .duration(
          "upstream_idle", [](auto& c) -> auto& { return c.upstream.idle; }, shortest, hours(1))
      .choice(
          "upstream_reuse", [](auto& c) -> auto& { return c.upstream.reuse; },
          std::vector<Choice<UpstreamReuse>>{{"pooled", UpstreamReuse::pooled},
                                             {"never", UpstreamReuse::never}})
      .count(
          "upstream_connections", [](auto& c) -> auto& { return c.upstream.connections; }, 1,
          65'536)
      .texts(
          "retired", [](auto& c) -> auto& { return c.retired; })
      .text_table(
          "hosts", [](auto& c) -> auto& { return c.hosts; })
      .choice(
          "discovery", [](auto& c) -> auto& { return c.discovery; },
          std::vector<Choice<Discovery>>{{"callers", Discovery::callers},
                                         {"public", Discovery::public_},
                                         {"off", Discovery::off}})
      .choice(
          "unmatched_key", [](auto& c) -> auto& { return c.unmatched_key; },
          std::vector<Choice<UnmatchedKey>>{{"pass", UnmatchedKey::pass},
                                            {"refuse", UnmatchedKey::refuse}})
      .text(
          "documentation", [](auto& c) -> auto& { return c.documentation; })
      .choice(
          "dialect", [](auto& c) -> auto& { return c.dialect; },
          std::vector<Choice<Dialect>>{{"ietf", Dialect::ietf}, {"stripe", Dialect::stripe}})
      .text(
          "outcome_tokens", [](auto& c) -> auto& { return c.outcome_tokens; })
      .flag(
          "compress", [](auto& c) -> auto& { return c.compress; });
  return settings.list();
}

const std::vector<Choice<TlsVersion>> tls_versions = {{"1.2", TlsVersion::tls12},
                                                      {"1.3", TlsVersion::tls13}};

std::vector<Setting<GatewayConfig>> tls_settings() {
  Settings<GatewayConfig> settings;
  settings
      .text(
          "certificate", [](auto& c) -> auto& { return c.tls->certificate; })
      .text(
          "key", [](auto& c) -> auto& { return c.tls->key; })
      .text(
          "client_ca", [](auto& c) -> auto& { return c.tls->client_ca; })
      .choice(
          "minimum", [](auto& c) -> auto& { return c.tls->minimum; }, tls_versions);
  return settings.list();
}

std::vector<Setting<GatewayConfig>> upstream_tls_settings() {
  Settings<GatewayConfig> settings;
  settings
      .text(
          "ca", [](auto& c) -> auto& { return c.upstream.tls.ca; })
      .text(
          "server_name", [](auto& c) -> auto& { return c.upstream.tls.server_name; })
      .text(
          "certificate", [](auto& c) -> auto& { return c.upstream.tls.certificate; })
      .text(
          "key", [](auto& c) -> auto& { return c.upstream.tls.key; })
      .flag(
          "verify", [](auto& c) -> auto& { return c.upstream.tls.verify; })
      .choice(
          "minimum", [](auto& c) -> auto& { return c.upstream.tls.minimum; }, tls_versions);
  return settings.list();
}

std::vector<Setting<GatewayConfig>> store_settings() {
  Settings<GatewayConfig> settings;
  settings
      .add(
          "url",
          [](const ConfigNode& node, GatewayConfig& config, const Complain& complain) {
            if (node.kind != Kind::text || node.text.empty()) {
              return complain(node, "a store is needed, such as \"sqlite:einmal.db\"");
            }
            config.store_url = node.text;
          },
          [](const GatewayConfig& config) { return show_store_url(config.store_url); })
      .duration(
          "audit_retention", [](auto& c) -> auto& { return c.audit_retention; }, shortest,
          ten_years)
      .add(
          "accept_time",
          [](const ConfigNode& node, GatewayConfig& config, const Complain& complain) {
            if (node.kind != Kind::time) {
              return complain(node,
                              "a date and time with its offset is needed, without quotes, such as "
                              "2026-03-29T12:00:00Z");
            }
            config.accept_time = node.time;
          },
          [](const GatewayConfig& config) {
            return config.accept_time ? http::imf_fixdate(*config.accept_time) : "-";
          });
  return settings.list();
}

std::vector<Setting<GatewayConfig>> caller_settings() {
  Settings<GatewayConfig> settings;
  settings
      .add(
          "source",
          [](const ConfigNode& node, GatewayConfig& config, const Complain& complain) {
            const auto read = parse_caller(node.text, config.caller);
            if (!read) complain(node, read.error().message);
          },
          [](const GatewayConfig& config) { return show(show(config.caller)); })
      .texts(
          "trusted_peers", [](auto& c) -> auto& { return c.caller.trusted_peers; })
      .text(
          "map", [](auto& c) -> auto& { return c.caller.map; })
      .text_table(
          "require", [](auto& c) -> auto& { return c.caller.require; })
      .text(
          "answer_header", [](auto& c) -> auto& { return c.caller.answer_header; })
      .duration(
          "positive_cache", [](auto& c) -> auto& { return c.caller.positive_cache; }, shortest,
          hours(1))
      .text(
          "keys", [](auto& c) -> auto& { return c.caller.jwt.keys; })
      .texts(
          "algorithms", [](auto& c) -> auto& { return c.caller.jwt.algorithms; })
      .text(
          "issuer", [](auto& c) -> auto& { return c.caller.jwt.issuer; })
      .texts(
          "audiences", [](auto& c) -> auto& { return c.caller.jwt.audiences; })
      .duration(
          "leeway", [](auto& c) -> auto& { return c.caller.jwt.leeway; }, shortest, minutes(10));
  return settings.list();
}

std::vector<Setting<GatewayConfig>> metrics_settings() {
  Settings<GatewayConfig> settings;
  settings.parsed(
      "listen", [](auto& c) -> auto& { return *c.metrics; }, parse_host_port);
  return settings.list();
}

std::vector<Setting<GatewayConfig>> log_settings() {
  using Format = LogOptions::Format;
  Settings<GatewayConfig> settings;
  settings
      .choice(
          "format", [](auto& c) -> auto& { return c.log.format; },
          std::vector<Choice<Format>>{{"text", Format::text}, {"json", Format::json}})
      .choice(
          "level", [](auto& c) -> auto& { return c.log.level; },
          std::vector<Choice<LogLevel>>{{"debug", LogLevel::debug},
                                        {"info", LogLevel::info},
                                        {"warning", LogLevel::warning},
                                        {"error", LogLevel::error}})
      .text(
          "file", [](auto& c) -> auto& { return c.log.file; })
      .flag(
          "requests", [](auto& c) -> auto& { return c.log.requests; });
  return settings.list();
}

std::vector<Setting<GatewayConfig>> limits_settings() {
  constexpr std::int64_t a_million = 1'000'000;
  Settings<GatewayConfig> settings;
  settings
      .size(
          "buffer_budget", [](auto& c) -> auto& { return c.limits.buffer_budget; }, a_mib,
          a_gib * 1024)
      .count(
          "connections", [](auto& c) -> auto& { return c.limits.connections; }, 1, a_million)
      .count(
          "waiters", [](auto& c) -> auto& { return c.limits.waiters; }, 1, a_million)
      .count(
          "waiters_per_key", [](auto& c) -> auto& { return c.limits.waiters_per_key; }, 1,
          a_million)
      .count(
          "waiters_per_caller", [](auto& c) -> auto& { return c.limits.waiters_per_caller; }, 1,
          a_million)
      .count(
          "live_per_caller", [](auto& c) -> auto& { return c.limits.live_per_caller; }, 1,
          a_million* a_million)
      .count(
          "uncertain_per_caller", [](auto& c) -> auto& { return c.limits.uncertain_per_caller; }, 1,
          a_million* a_million)
      .size(
          "head", [](auto& c) -> auto& { return c.limits.head; }, 1024, a_mib)
      .duration(
          "head_time", [](auto& c) -> auto& { return c.limits.head_time; }, shortest, hours(1))
      .duration(
          "body_time", [](auto& c) -> auto& { return c.limits.body_time; }, shortest, hours(1))
      .size(
          "body_rate", [](auto& c) -> auto& { return c.limits.body_rate; }, 1, a_gib)
      .duration(
          "keep_alive_time", [](auto& c) -> auto& { return c.limits.keep_alive_time; }, shortest,
          a_day);
  return settings.list();
}

std::vector<Setting<GatewayConfig>> cors_settings() {
  Settings<GatewayConfig> settings;
  settings
      .texts(
          "origins", [](auto& c) -> auto& { return c.cors->origins; })
      .texts(
          "methods", [](auto& c) -> auto& { return c.cors->methods; })
      .texts(
          "headers", [](auto& c) -> auto& { return c.cors->headers; })
      .texts(
          "expose", [](auto& c) -> auto& { return c.cors->expose; })
      .flag(
          "credentials", [](auto& c) -> auto& { return c.cors->credentials; })
      .duration(
          "max_age", [](auto& c) -> auto& { return c.cors->max_age; }, seconds(1), a_day);
  return settings.list();
}

// --- [defaults] and [[operation]] -----------------------------------------------------------

/// The JSON text of a default that stands in TOML; empty if TOML cannot say it.
std::string json_text(const ConfigNode& node) {
  std::string out;
  switch (node.kind) {
    case Kind::text:
      http::append_json_string(out, node.text);
      break;
    case Kind::integer:
      out = std::to_string(node.integer);
      break;
    case Kind::flag:
      out = node.flag ? "true" : "false";
      break;
    case Kind::number: {
      if (!std::isfinite(node.number)) break;
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof digits, node.number).ptr;
      out.assign(digits, end);
      break;
    }
    default:
      break;
  }
  return out;
}

void read_json_defaults(const ConfigNode& node, FingerprintConfig& config,
                        const Complain& complain) {
  if (node.kind != Kind::table) {
    return complain(node, "a table is needed, such as { \"/currency\" = \"usd\" }");
  }
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    auto json = json_text(node.items[i]);
    if (json.empty()) {
      complain(node.items[i], node.keys[i] + ": a text, a number, true or false is needed");
    }
    config.defaults[node.keys[i]] = std::move(json);
  }
}

std::string show_json_defaults(const FingerprintConfig& config) {
  std::string text;
  for (const auto& [pointer, json] : config.defaults) {
    text.append(text.empty() ? "{ " : ", ").append(show(pointer)).append(" = ").append(json);
  }
  return text.empty() ? "-" : text + " }";
}

std::vector<Setting<FingerprintConfig>> fingerprint_settings() {
  Settings<FingerprintConfig> settings;
  settings
      .texts(
          "headers", [](auto& c) -> auto& { return c.headers; })
      .texts(
          "ignore", [](auto& c) -> auto& { return c.ignore; })
      .texts(
          "only", [](auto& c) -> auto& { return c.only; })
      .flag(
          "nfc", [](auto& c) -> auto& { return c.nfc; })
      .add("defaults", read_json_defaults, show_json_defaults);
  return settings.list();
}

std::vector<Setting<ReconcileConfig>> reconcile_settings() {
  Settings<ReconcileConfig> settings;
  settings
      .text(
          "request", [](auto& c) -> auto& { return c.request; })
      .texts(
          "completed", [](auto& c) -> auto& { return c.completed; })
      .texts(
          "failed", [](auto& c) -> auto& { return c.failed; })
      .texts(
          "absent", [](auto& c) -> auto& { return c.absent; })
      .count(
          "status", [](auto& c) -> auto& { return c.status; }, 200, 399)
      .count(
          "failed_status", [](auto& c) -> auto& { return c.failed_status; }, 400, 499)
      .text(
          "result", [](auto& c) -> auto& { return c.result; })
      .text(
          "location", [](auto& c) -> auto& { return c.location; })
      .text(
          "credentials", [](auto& c) -> auto& { return c.credentials; });
  return settings.list();
}

void read_outcomes(const ConfigNode& node, OperationConfig& operation, const Complain& complain) {
  constexpr std::string_view wanted =
      "STATUS = \"completed\", \"failed\", \"released\" or \"uncertain\" is needed, for a status "
      "from 200 to 599";
  if (node.kind != Kind::table) return complain(node, std::string(wanted));
  operation.outcomes.clear();
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const auto& status = node.keys[i];
    const bool is_status = status.size() == 3 && status >= "200" && status <= "599" &&
                           status.find_first_not_of("0123456789") == std::string::npos;
    const auto outcome = http::parse_outcome(node.items[i].text);
    if (!is_status || node.items[i].kind != Kind::text || !outcome) {
      complain(node.items[i], status + ": " + std::string(wanted));
      continue;
    }
    operation.outcomes[std::stoi(status)] = *outcome;
  }
}

std::string show_outcomes(const OperationConfig& operation) {
  std::string text;
  for (const auto& [status, outcome] : operation.outcomes) {
    text.append(text.empty() ? "{ " : ", ").append(std::to_string(status)).append(" = \"");
    text.append(http::name(outcome)).append("\"");
  }
  return text.empty() ? "-" : text + " }";
}

void add_policies(Settings<OperationConfig>& settings) {
  settings
      .duration(
          "lease", [](auto& c) -> auto& { return c.policies.lease; }, milliseconds(100), a_day)
      .choice(
          "on_lease_expiry", [](auto& c) -> auto& { return c.policies.on_lease_expiry; },
          std::vector<Choice<OnLeaseExpiry>>{{"uncertain", OnLeaseExpiry::uncertain},
                                             {"takeover", OnLeaseExpiry::takeover}})
      .duration(
          "retention", [](auto& c) -> auto& { return c.policies.retention; }, shortest, ten_years)
      .choice(
          "after_expiry", [](auto& c) -> auto& { return c.policies.after_expiry; },
          std::vector<Choice<AfterExpiry>>{{"new", AfterExpiry::claim_anew},
                                           {"refuse", AfterExpiry::refuse}})
      .duration(
          "tombstone", [](auto& c) -> auto& { return c.policies.tombstone; }, shortest, ten_years);
}

void add_key(Settings<OperationConfig>& settings) {
  settings
      .choice(
          "key", [](auto& c) -> auto& { return c.key.required; },
          std::vector<Choice<bool>>{{"required", true}, {"optional", false}})
      .text(
          "key_header", [](auto& c) -> auto& { return c.key.header; })
      .texts(
          "key_aliases", [](auto& c) -> auto& { return c.key.aliases; })
      .text(
          "key_member", [](auto& c) -> auto& { return c.key.member; });
}

void add_upstream(Settings<OperationConfig>& settings) {
  settings
      .choice(
          "upstream_key", [](auto& c) -> auto& { return c.upstream_key; },
          std::vector<Choice<UpstreamKey>>{{"original", UpstreamKey::original},
                                           {"derived", UpstreamKey::derived},
                                           {"none", UpstreamKey::none}})
      .add("outcomes", read_outcomes, show_outcomes)
      .choice(
          "replay", [](auto& c) -> auto& { return c.replay; },
          std::vector<Choice<ReplayMode>>{{"stored", ReplayMode::stored},
                                          {"resource", ReplayMode::resource}})
      .texts(
          "unstored_headers", [](auto& c) -> auto& { return c.unstored_headers; })
      .count(
          "uncertain_status", [](auto& c) -> auto& { return c.uncertain_status; }, 409, 504)
      .duration(
          "store_grace", [](auto& c) -> auto& { return c.store_grace; }, shortest, hours(1))
      .choice(
          "on_store_failure", [](auto& c) -> auto& { return c.on_store_failure; },
          std::vector<Choice<OnStoreFailure>>{{"closed", OnStoreFailure::closed},
                                              {"open", OnStoreFailure::open}})
      .text(
          "authorize", [](auto& c) -> auto& { return c.authorize; });
}

void add_reconcile(Settings<OperationConfig>& settings) {
  settings
      .add(
          "reconcile",
          [](const ConfigNode& node, OperationConfig& operation, const Complain& complain) {
            if (node.kind != Kind::table) return complain(node, "a table is needed");
            ReconcileConfig reconcile;
            read_members(node, reconcile_settings(), reconcile, complain);
            operation.reconcile = std::move(reconcile);
          },
          [](const OperationConfig& operation) {
            Settings<OperationConfig> shown;
            shown.table(
                "reconcile", [](auto& c) -> auto& { return *c.reconcile; }, reconcile_settings());
            return operation.reconcile ? shown.list().front().show(operation) : "-";
          })
      .duration(
          "quiescence", [](auto& c) -> auto& { return c.quiescence; }, shortest, ten_years);
}

std::vector<Setting<OperationConfig>> shared_settings() {
  Settings<OperationConfig> settings;
  add_key(settings);
  settings
      .choice(
          "in_flight", [](auto& c) -> auto& { return c.in_flight; },
          std::vector<Choice<InFlight>>{{"reject", InFlight::reject},
                                        {"wait", InFlight::wait},
                                        {"operation", InFlight::operation}})
      .duration(
          "wait", [](auto& c) -> auto& { return c.wait; }, shortest, hours(1));
  add_policies(settings);
  settings
      .size(
          "max_request_body", [](auto& c) -> auto& { return c.max_request_body; }, 1, a_gib)
      .size(
          "max_stored_body", [](auto& c) -> auto& { return c.max_stored_body; }, 1, a_gib)
      .table(
          "fingerprint", [](auto& c) -> auto& { return c.fingerprint; }, fingerprint_settings());
  add_upstream(settings);
  add_reconcile(settings);
  add_times(
      settings, [](auto& c) -> auto& { return c.times; });
  return settings.list();
}

void read_match(const ConfigNode& node, OperationConfig& operation, const Complain& complain) {
  const auto space = node.text.find(' ');
  operation.match.method = node.text.substr(0, space);
  operation.match.path = space == std::string::npos ? std::string() : node.text.substr(space + 1);
  if (node.kind != Kind::text || operation.match.method.empty() || operation.match.path.empty()) {
    complain(node, "a method and a path are needed, such as \"POST /orders\"");
  }
}

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"gateway", gateway_settings()},
      {"tls", tls_settings(), [](GatewayConfig& config) { config.tls.emplace(); },
       [](const GatewayConfig& config) { return config.tls.has_value(); }},
      {"upstream_tls", upstream_tls_settings()},
      {"store", store_settings()},
      {"caller", caller_settings()},
      {"metrics", metrics_settings(), [](GatewayConfig& config) { config.metrics.emplace(); },
       [](const GatewayConfig& config) { return config.metrics.has_value(); }},
      {"log", log_settings()},
      {"limits", limits_settings()},
      {"cors", cors_settings(), [](GatewayConfig& config) { config.cors.emplace(); },
       [](const GatewayConfig& config) { return config.cors.has_value(); }},
  };
  return all;
}

const std::vector<Setting<OperationConfig>>& operation_settings() {
  static const auto all = shared_settings();
  return all;
}

const std::vector<Setting<OperationConfig>>& own_operation_settings() {
  static const auto all = [] {
    Settings<OperationConfig> settings;
    settings
        .text(
            "name", [](auto& c) -> auto& { return c.name; })
        .text(
            "title", [](auto& c) -> auto& { return c.title; })
        .add("match", read_match, [](const OperationConfig& operation) {
          return show(operation.match.method + " " + operation.match.path);
        });
    return settings.list();
  }();
  return all;
}

}  // namespace einmal::gateway
