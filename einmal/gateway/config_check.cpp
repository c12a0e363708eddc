#include "einmal/gateway/config_check.hpp"

#include <algorithm>
#include <string_view>

#include "einmal/core/scope.hpp"
#include "einmal/gateway/config_file.hpp"
#include "einmal/gateway/route.hpp"
#include "einmal/identity/caller.hpp"

namespace einmal {
namespace gateway {

namespace {

using Problems = std::vector<std::string>;

bool is_token(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of(
             "!#$%&'*+-.^_`|~0123456789"
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
}

bool is_pointer(std::string_view text) { return text.empty() || text.front() == '/'; }

void check_match(const OperationConfig& operation, Problems& problems) {
  const auto& method = operation.match.method;
  if (!is_token(method)) problems.push_back("match: a method and a path are needed");
  for (const auto* safe : {"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"}) {
    if (method == safe)
      problems.push_back("match: " + method +
                         " has no effect to protect and always passes through");
  }
  const auto path = PathTemplate::parse(operation.match.path);
  if (!path) problems.push_back("match: " + path.error().message);
}

void check_key(const KeyConfig& key, Problems& problems) {
  auto names = key.aliases;
  names.push_back(key.header);
  for (const auto& name : names) {
    if (!is_token(name)) problems.push_back("key: '" + name + "' is not a header name");
    if (identity::is_credential_header(name))
      problems.push_back("key: " + name + " carries credentials and cannot carry a key");
  }
  if (key.member && (key.member->empty() || !is_pointer(*key.member)))
    problems.push_back("key_member: a JSON pointer is needed, such as \"/idempotency_key\"");
}

void check_fingerprint(const FingerprintConfig& fingerprint, Problems& problems) {
  auto pointers = fingerprint.ignore;
  pointers.insert(pointers.end(), fingerprint.only.begin(), fingerprint.only.end());
  for (const auto& [pointer, value] : fingerprint.defaults) pointers.push_back(pointer);
  for (const auto& pointer : pointers) {
    if (pointer.empty() || !is_pointer(pointer))
      problems.push_back("fingerprint: '" + pointer +
                         "' is not a JSON pointer such as \"/sent_at\"");
  }
  for (const auto& name : fingerprint.headers) {
    if (!is_token(name)) problems.push_back("fingerprint: '" + name + "' is not a header name");
  }
}

void check_policies(const OperationConfig& operation, Problems& problems) {
  const auto& policies = operation.policies;
  if (policies.lease && operation.store_grace >= *policies.lease)
    problems.push_back("store_grace: must be shorter than the lease");
  if (operation.on_store_failure == OnStoreFailure::open &&
      policies.on_lease_expiry == OnLeaseExpiry::takeover)
    problems.push_back(
        "on_store_failure = \"open\" and on_lease_expiry = \"takeover\" together "
        "could run an operation any number of times; choose one");
  if (operation.uncertain_status != 504 && operation.uncertain_status != 409)
    problems.push_back("uncertain_status: 504 or 409");
  if (operation.max_stored_body == 0 || operation.max_request_body == 0)
    problems.push_back("max_request_body and max_stored_body: at least one byte");
}

void check_reconcile(const OperationConfig& operation, Problems& problems) {
  if (!operation.reconcile) return;
  if (!operation.reconcile->request.starts_with("GET "))
    problems.push_back("reconcile: request: a GET is needed, such as \"GET /orders?key={key}\"");
  if (!operation.reconcile->absent.empty() && !operation.quiescence)
    problems.push_back(
        "quiescence: reconcile says when an effect is absent, and only you know how "
        "long after the last byte a request may still take effect; set it");
}

void check_name(std::string_view what, const std::string& name, Problems& problems) {
  const bool printable =
      std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (name.empty() || name.size() > max_scope_part_bytes || !printable)
    problems.push_back(std::string(what) + ": 1.." + std::to_string(max_scope_part_bytes) +
                       " visible ASCII characters without blanks are needed");
}

void check_caller(const CallerConfig& caller, Problems& problems) {
  if (caller.kind == CallerKind::header && !is_token(caller.argument))
    problems.push_back("[caller] source: '" + caller.argument + "' is not a header name");
  if (caller.kind == CallerKind::header && identity::is_credential_header(caller.argument) &&
      !caller.map)
    problems.push_back("[caller] source: " + caller.argument +
                       " carries a credential, which rotates; name an account header, or translate "
                       "it with map = FILE");
  for (const auto& peer : caller.trusted_peers) {
    const auto network = identity::Network::parse(peer);
    if (!network) problems.push_back("[caller] trusted_peers: " + network.error().message);
  }
}

}  // namespace

std::vector<std::string> problems_of(const OperationConfig& operation) {
  Problems problems;
  check_name("name", operation.name, problems);
  check_match(operation, problems);
  check_key(operation.key, problems);
  check_fingerprint(operation.fingerprint, problems);
  check_policies(operation, problems);
  check_reconcile(operation, problems);
  return problems;
}

std::string conflict_between(const OperationConfig& first, const OperationConfig& second) {
  if (first.name == second.name)
    return "the name \"" + first.name + "\" is taken; a name is the identity of an operation";
  if (first.match.method != second.match.method) return {};
  const auto one = PathTemplate::parse(first.match.path);
  const auto two = PathTemplate::parse(second.match.path);
  if (!one || !two || !one->overlaps(*two)) return {};
  return "match: " + second.match.method + " " + second.match.path + " and " + first.match.path +
         " of \"" + first.name + "\" match the same request";
}

std::vector<std::string> problems_of_rest(const GatewayConfig& config) {
  Problems problems;
  if (config.upstream.addresses.empty())
    problems.push_back("[gateway] upstream: where requests go is missing");
  check_name("[gateway] namespace", config.name_space, problems);
  check_caller(config.caller, problems);
  if (config.tls && (config.tls->certificate.empty() || config.tls->key.empty()))
    problems.push_back("[tls]: certificate and key are needed, both PEM files");
  if (config.caller.kind == CallerKind::mtls && (!config.tls || !config.tls->client_ca))
    problems.push_back("[caller] source: mtls needs [tls] client_ca");
  for (const auto& operation : config.operations) {
    if (operation.policies.after_expiry == AfterExpiry::refuse &&
        config.audit_retention < operation.policies.tombstone)
      problems.push_back("[store] audit_retention: shorter than the tombstone of \"" +
                         operation.name + "\"");
  }
  if (config.cors && config.cors->origins.empty())
    problems.push_back("[cors] origins: at least one is needed");
  if (config.cors && config.cors->credentials &&
      std::count(config.cors->origins.begin(), config.cors->origins.end(), "*") != 0)
    problems.push_back("[cors] credentials: not together with the origin \"*\"");
  return problems;
}

}  // namespace gateway

Result<void> check_config(const GatewayConfig& config) {
  std::string text;
  const auto add = [&](const std::string& problem) {
    text += (text.empty() ? "" : "\n") + problem;
  };
  for (const auto& problem : gateway::problems_of_rest(config)) add(problem);
  for (std::size_t i = 0; i < config.operations.size(); ++i) {
    const auto& operation = config.operations[i];
    for (const auto& problem : gateway::problems_of(operation))
      add("operation \"" + operation.name + "\" " + problem);
    for (std::size_t j = 0; j < i; ++j) {
      const auto conflict = gateway::conflict_between(config.operations[j], operation);
      if (!conflict.empty()) add("operation \"" + operation.name + "\" " + conflict);
    }
  }
  if (!text.empty()) return failure(ErrorCode::invalid, text);
  return {};
}

}  // namespace einmal
