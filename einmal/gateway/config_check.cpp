#include "einmal/gateway/config_check.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "einmal/core/scope.hpp"
#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/gateway/config_file.hpp"
#include "einmal/gateway/config_text.hpp"
#include "einmal/gateway/reconcile_mapping.hpp"
#include "einmal/gateway/route.hpp"
#include "einmal/http/head.hpp"
#include "einmal/http/replay_headers.hpp"
#include "einmal/http/target.hpp"
#include "einmal/identity/caller.hpp"
#include "einmal/identity/jws.hpp"
#include "einmal/identity/sources.hpp"

namespace einmal::gateway {

namespace {

/// Collects findings.
class Findings {
 public:
  void add(std::string key, std::string what) { list_.push_back({{std::move(key)}, what}); }
  void add_at(std::vector<std::string> keys, std::string what) {
    list_.push_back({std::move(keys), std::move(what)});
  }
  std::vector<Finding> list() { return std::move(list_); }

 private:
  std::vector<Finding> list_;
};

bool is_url(std::string_view text) {
  const auto parts = http::parse_absolute_target(text);
  return parts && http::parse_authority(parts->authority) && http::is_field_value(text) &&
         text.find_first_of(" <>\"") == std::string_view::npos;
}

// --- one operation --------------------------------------------------------------------------

void check_name(const std::string& key, const std::string& name, Findings& findings) {
  const bool visible =
      std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (name.empty() || name.size() > max_scope_part_bytes || !visible) {
    findings.add(key, "1.." + std::to_string(max_scope_part_bytes) +
                          " visible ASCII characters without blanks are needed");
  }
}

void check_match(const MatchConfig& match, Findings& findings) {
  const auto& method = match.method;
  if (!http::is_token(method)) {
    return findings.add("match", "a method and a path are needed, such as \"POST /orders\"");
  }
  for (const auto* safe : {"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"}) {
    if (http::iequals(method, safe)) {
      findings.add("match", method + " has no effect to protect and always passes through");
    }
  }
  if (std::any_of(method.begin(), method.end(), [](char c) { return c >= 'a' && c <= 'z'; })) {
    findings.add("match", method + " would match that spelling only; methods are upper-case");
  }
  const auto path = PathTemplate::parse(match.path);
  if (!path) findings.add("match", path.error().message);
}

/// Names that have another task in a request.
bool cannot_carry_a_key(std::string_view name) {
  for (const auto* taken : {"Host", "Expect", "Date", "Accept", "User-Agent", "Prefer", "Origin",
                            "Idempotency-Status", "Idempotency-Expires", "Idempotent-Replayed"}) {
    if (http::iequals(name, taken)) return true;
  }
  return http::is_hop_by_hop(name) || http::istarts_with(name, "Content-") ||
         http::istarts_with(name, "Accept-") || http::istarts_with(name, "Einmal-");
}

void check_key(const KeyConfig& key, Findings& findings) {
  std::vector<std::string> seen;
  const auto check = [&](const std::string& setting, const std::string& name) {
    if (!http::is_token(name)) return findings.add(setting, "'" + name + "' is not a header name");
    if (identity::is_credential_header(name)) {
      return findings.add(setting, name + " carries credentials and cannot carry a key");
    }
    if (cannot_carry_a_key(name)) {
      return findings.add(setting, name + " has another meaning and cannot carry a key");
    }
    const bool twice = std::any_of(seen.begin(), seen.end(), [&](const std::string& before) {
      return http::same_spoken_name(before, name);
    });
    if (twice) findings.add(setting, name + " stands twice");
    seen.push_back(name);
  };
  check("key_header", key.header);
  for (const auto& alias : key.aliases) check("key_aliases", alias);
  if (key.member && !key.member->starts_with('/')) {
    findings.add("key_member", "a JSON pointer is needed, such as \"/idempotency_key\"");
  }
}

void check_key_against_caller(const KeyConfig& key, const CallerConfig& caller,
                              Findings& findings) {
  if (caller.kind != CallerKind::header) return;
  const auto check = [&](const std::string& setting, const std::string& name) {
    if (!http::same_spoken_name(name, caller.argument)) return;
    findings.add_at({setting, "caller.source"},
                    name + " names the caller ([caller] source) and cannot carry a key");
  };
  check("key_header", key.header);
  for (const auto& alias : key.aliases) check("key_aliases", alias);
}

void check_fingerprint(const FingerprintConfig& from, Findings& findings) {
  FingerprintOptions options;
  options.headers = from.headers;
  options.ignore = from.ignore;
  options.only = from.only;
  options.defaults = from.defaults;
  options.nfc = from.nfc;
  const auto profile = FingerprintProfile::make(std::move(options));
  if (!profile) findings.add("fingerprint", profile.error().message);
}

void check_policies(const OperationConfig& operation, Findings& findings) {
  const auto& policies = operation.policies;
  if (policies.lease && operation.store_grace >= *policies.lease) {
    findings.add_at({"store_grace", "lease"},
                    "store_grace (" + show(operation.store_grace) +
                        ") must be shorter than the lease (" + show(*policies.lease) +
                        "): an answer is held that long while its record is written");
  }
  if (operation.on_store_failure == OnStoreFailure::open &&
      policies.on_lease_expiry == OnLeaseExpiry::takeover) {
    findings.add_at({"on_store_failure", "on_lease_expiry"},
                    "on_store_failure = \"open\" and on_lease_expiry = \"takeover\" together could "
                    "run an operation any number of times; choose one");
  }
  if (operation.uncertain_status != 504 && operation.uncertain_status != 409) {
    findings.add("uncertain_status", "504 or 409");
  }
  for (const auto& [status, outcome] : operation.outcomes) {
    if (status / 100 == 2 && outcome == http::Outcome::released) {
      findings.add("outcomes",
                   std::to_string(status) +
                       " cannot be \"released\": a success that frees its key runs again; let the "
                       "upstream say Einmal-Outcome: released where nothing happened");
    }
  }
  for (const auto& name : operation.unstored_headers) {
    if (!http::is_token(name))
      findings.add("unstored_headers", "'" + name + "' is not a header name");
  }
  if (operation.authorize) {
    constexpr std::string_view prefix = "auth-request:";
    if (!operation.authorize->starts_with(prefix) ||
        !is_url(std::string_view(*operation.authorize).substr(prefix.size()))) {
      findings.add("authorize", "\"auth-request:URL\" with an http or https URL is needed");
    }
  }
}

void check_reconcile(const OperationConfig& operation, Findings& findings) {
  if (!operation.reconcile) return;
  const auto& reconcile = *operation.reconcile;
  if (!reconcile.request.starts_with("GET /")) {
    findings.add("reconcile",
                 "request: a GET is needed, such as \"GET /orders?key={key}\"; asking must not "
                 "change anything");
  }
  if (reconcile.completed.empty() && reconcile.failed.empty() && reconcile.absent.empty()) {
    findings.add("reconcile", "completed, failed or absent must say which answers mean that");
  }
  std::set<std::string> seen;
  for (const auto* list : {&reconcile.completed, &reconcile.failed, &reconcile.absent}) {
    for (const auto& text : *list) {
      const auto condition = parse_reconcile_condition(text);
      if (!condition) {
        findings.add("reconcile", condition.error().message);
        return;
      }
      if (!seen.insert(text).second) findings.add("reconcile", "'" + text + "' stands twice");
    }
  }
  if (!reconcile.failed.empty() && reconcile.failed_status == 0) {
    findings.add("reconcile", "failed_status: which status a refusal is repeated with, 400 to 499");
  }
  if (const auto mapping = ReconcileMapping::make(operation); !mapping)
    findings.add("reconcile", mapping.error().message);
  if (!reconcile.absent.empty() && !operation.quiescence) {
    findings.add_at(
        {"quiescence", "reconcile"},
        "quiescence: reconcile says when an effect is absent, and only you know how long "
        "after its last byte a request may still take effect; set it");
  }
}

// --- the rest -------------------------------------------------------------------------------

void check_caller(const GatewayConfig& config, Findings& findings) {
  const auto& caller = config.caller;
  const auto report = [&](const std::string& key, const auto& made) {
    if (!made) findings.add(key, made.error().message);
  };
  switch (caller.kind) {
    case CallerKind::header:
      if (!http::is_token(caller.argument)) {
        findings.add("caller.source", "'" + caller.argument + "' is not a header name");
      } else if (identity::is_credential_header(caller.argument) && !caller.map) {
        findings.add("caller.source",
                     caller.argument +
                         " carries a credential, which rotates; name an account header, or "
                         "translate it with map = FILE");
      }
      break;
    case CallerKind::fixed:
      report("caller.source", identity::fixed_source(caller.argument));
      break;
    case CallerKind::mtls:
      report("caller.source", identity::certificate_source(caller.argument));
      if (!config.tls || !config.tls->client_ca) {
        findings.add_at({"caller.source", "tls.client_ca"}, "mtls needs [tls] client_ca");
      }
      break;
    case CallerKind::auth_request:
      if (!http::is_token(caller.answer_header)) {
        findings.add("caller.answer_header", "'" + caller.answer_header + "' is not a header name");
      } else {
        report("caller.source",
               identity::auth_request_source(caller.argument, caller.answer_header));
      }
      break;
    case CallerKind::jwt:
      if (caller.jwt.keys.empty()) {
        findings.add("caller.source",
                     "jwt needs keys = FILE, a PEM or JWKS file with the keys that verify tokens");
      }
      break;
  }
  for (const auto& peer : caller.trusted_peers) {
    const auto network = identity::Network::parse(peer);
    if (!network) findings.add("caller.trusted_peers", network.error().message);
  }
  for (const auto& name : caller.jwt.algorithms) {
    if (!identity::jws_algorithm(name)) {
      findings.add("caller.algorithms", "'" + name + "' is none of RS256, ES256, EdDSA, HS256");
    }
  }
}

void check_gateway(const GatewayConfig& config, Findings& findings) {
  if (config.upstream.addresses.empty()) {
    findings.add("gateway.upstream", "where requests go is missing");
  }
  check_name("gateway.namespace", config.name_space, findings);
  for (const auto& address : config.upstream.addresses) {
    if (config.listen.port != 0 && address.address == config.listen) {
      findings.add("gateway.upstream", show(address) + " is the gateway itself (listen)");
    }
  }
  if (config.metrics && config.metrics->port != 0 && *config.metrics == config.listen) {
    findings.add("metrics.listen", "must differ from [gateway] listen");
  }
  for (const auto& name : config.retired) {
    for (const auto& operation : config.operations) {
      if (operation.name == name) {
        findings.add("gateway.retired", "\"" + name + "\" is configured as an operation");
      }
    }
  }
  if (config.documentation &&
      (!is_url(*config.documentation) ||
       std::string_view("/#=").find(config.documentation->back()) == std::string_view::npos)) {
    findings.add("gateway.documentation",
                 "an http or https URL that ends in / or # is needed; the reason is put behind it");
  }
}

void check_hosts(const GatewayConfig& config, Findings& findings) {
  std::set<std::string> servers;
  for (const auto& [alias, server] : config.hosts) {
    if (!http::parse_authority(alias)) {
      findings.add("gateway.hosts", "'" + alias + "' is not HOST or HOST:PORT");
    }
    if (!http::parse_authority(server)) {
      findings.add("gateway.hosts", "'" + server + "' is not HOST or HOST:PORT");
    }
    servers.insert(server);
  }
  if (servers.size() > 1) {
    findings.add("gateway.hosts",
                 "all aliases must name the same authority: requests to different servers are "
                 "different operations");
  }
  for (const auto& server : servers) {
    if (config.hosts.count(server) != 0) {
      findings.add("gateway.hosts", "'" + server + "' is an alias and has aliases itself");
    }
  }
}

void check_tls(const GatewayConfig& config, Findings& findings) {
  if (config.tls && (config.tls->certificate.empty() || config.tls->key.empty())) {
    findings.add_at({config.tls->certificate.empty() ? "tls.certificate" : "tls.key", "tls"},
                    "certificate and key are needed, both PEM files");
  }
  const auto& client = config.upstream.tls;
  if (client.certificate.has_value() != client.key.has_value()) {
    findings.add_at({client.key ? "upstream_tls.key" : "upstream_tls.certificate", "upstream_tls"},
                    "certificate and key are needed together");
  }
}

void check_cors(const GatewayConfig& config, Findings& findings) {
  if (!config.cors) return;
  const auto& cors = *config.cors;
  if (cors.origins.empty()) findings.add_at({"cors.origins", "cors"}, "at least one is needed");
  for (const auto& origin : cors.origins) {
    const auto parts = http::parse_absolute_target(origin);
    const bool exact =
        parts && parts->rest.empty() && http::parse_authority(parts->authority).has_value();
    if (origin != "*" && !exact) {
      findings.add("cors.origins", "'" + origin + "' is not an origin such as https://shop.test");
    }
    if (origin == "*" && cors.credentials) {
      findings.add_at({"cors.credentials", "cors.origins"}, "not together with the origin \"*\"");
    }
  }
  for (const auto& [key, names] :
       {std::pair("cors.methods", &cors.methods), std::pair("cors.headers", &cors.headers),
        std::pair("cors.expose", &cors.expose)}) {
    for (const auto& name : *names) {
      if (!http::is_token(name)) findings.add(key, "'" + name + "' is not a token");
    }
  }
}

void check_limits(const GatewayConfig& config, Findings& findings) {
  const auto& limits = config.limits;
  if (limits.waiters_per_key > limits.waiters) {
    findings.add_at({"limits.waiters_per_key", "limits.waiters"},
                    "waiters_per_key is more than waiters");
  }
}

void check_against_gateway(const OperationConfig& operation, const GatewayConfig& config,
                           Findings& findings) {
  check_key_against_caller(operation.key, config.caller, findings);
  const auto bodies = operation.max_request_body + operation.max_stored_body;
  if (bodies > config.limits.buffer_budget) {
    findings.add_at({"max_request_body", "max_stored_body", "limits.buffer_budget"},
                    "max_request_body + max_stored_body is " + show_size(bodies) +
                        ", and [limits] buffer_budget (" + show_size(config.limits.buffer_budget) +
                        ") does not hold one such request");
  }
  if (operation.policies.after_expiry == AfterExpiry::refuse &&
      config.audit_retention < operation.policies.tombstone) {
    findings.add_at({"tombstone", "store.audit_retention", "after_expiry"},
                    "the tombstone (" + show(operation.policies.tombstone) +
                        ") outlives [store] audit_retention (" + show(config.audit_retention) +
                        "); the audit is kept at least as long");
  }
}

}  // namespace

std::vector<Finding> findings_in(const OperationConfig& operation, const GatewayConfig& config) {
  Findings findings;
  check_name("name", operation.name, findings);
  check_match(operation.match, findings);
  check_key(operation.key, findings);
  check_against_gateway(operation, config, findings);
  check_fingerprint(operation.fingerprint, findings);
  check_policies(operation, findings);
  check_reconcile(operation, findings);
  return findings.list();
}

std::vector<Finding> findings_between(const OperationConfig& first, const OperationConfig& second) {
  Findings findings;
  if (first.name == second.name && !first.name.empty()) {
    findings.add(
        "name", "the name \"" + first.name + "\" is taken; a name is the identity of an operation");
  }
  if (first.match.method != second.match.method) return findings.list();
  const auto one = PathTemplate::parse(first.match.path);
  const auto two = PathTemplate::parse(second.match.path);
  if (one && two && one->overlaps(*two)) {
    findings.add("match", second.match.method + " " + second.match.path + " and " +
                              first.match.path + " of \"" + first.name +
                              "\" match the same request");
  }
  return findings.list();
}

std::vector<Finding> findings_in_rest(const GatewayConfig& config) {
  Findings findings;
  check_gateway(config, findings);
  check_hosts(config, findings);
  check_caller(config, findings);
  check_tls(config, findings);
  check_cors(config, findings);
  check_limits(config, findings);
  return findings.list();
}

std::vector<Finding> findings_without_effect(const GatewayConfig& config,
                                             const std::function<bool(const std::string&)>& given) {
  Findings findings;
  const auto& caller = config.caller;
  const auto only_with = [&](std::initializer_list<const char*> keys, bool applies,
                             const std::string& with) {
    for (const auto* key : keys) {
      const auto path = std::string("caller.") + key;
      if (!applies && given(path)) findings.add(path, "has an effect only with source = " + with);
    }
  };
  const bool by_header = caller.kind == CallerKind::header;
  only_with({"trusted_peers"}, by_header && !caller.map, "\"header:NAME\" and without map");
  only_with({"map"}, by_header, "\"header:NAME\"");
  only_with({"keys", "algorithms", "issuer", "audiences", "leeway", "require"},
            caller.kind == CallerKind::jwt, "\"jwt:CLAIM\"");
  only_with({"answer_header", "positive_cache"}, caller.kind == CallerKind::auth_request,
            "\"auth-request:URL\"");
  const auto& addresses = config.upstream.addresses;
  if (given("upstream_tls") && !addresses.empty() &&
      std::none_of(addresses.begin(), addresses.end(),
                   [](const UpstreamAddress& address) { return address.tls; })) {
    findings.add("upstream_tls", "has no effect: no upstream begins with https://");
  }
  bool refuses = false;
  for (std::size_t i = 0; i < config.operations.size(); ++i) {
    const bool here = config.operations[i].policies.after_expiry == AfterExpiry::refuse;
    const auto path = "operation." + std::to_string(i) + ".tombstone";
    if (!here && given(path)) {
      findings.add(path, "has an effect only with after_expiry = \"refuse\"");
    }
    refuses = refuses || here;
  }
  refuses = refuses || config.built_in.policies.after_expiry == AfterExpiry::refuse;
  if (!refuses && given("defaults.tombstone")) {
    findings.add("defaults.tombstone", "has an effect only with after_expiry = \"refuse\"");
  }
  return findings.list();
}

}  // namespace einmal::gateway
