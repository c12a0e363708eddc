#include "einmal/gateway/settings.hpp"

#include <algorithm>

#include "einmal/identity/jwt.hpp"
#include "einmal/identity/sources.hpp"

namespace einmal::gateway {

namespace {

Result<Operation> make_operation(const GatewayConfig& config, const OperationConfig& from) {
  FingerprintOptions options;
  options.headers = from.fingerprint.headers;
  options.ignore = from.fingerprint.ignore;
  options.only = from.fingerprint.only;
  options.defaults = from.fingerprint.defaults;
  options.nfc = from.fingerprint.nfc;
  for (const auto& [alias, authority] : config.hosts) {
    if (options.hosts.empty()) options.hosts.push_back(authority);
    if (options.hosts.front() != authority) {
      return failure(ErrorCode::invalid,
                     "hosts: all aliases stand for one authority, that of the upstream; \"" +
                         authority + "\" is a second one");
    }
    options.hosts.push_back(alias);
  }
  auto profile = FingerprintProfile::make(std::move(options));
  if (!profile) return pass_on(profile);
  auto stored = std::make_shared<Profile>();
  stored->id = profile->id();
  stored->definition = profile->definition();
  Operation operation{from, std::nullopt, std::move(*profile), std::move(stored), {}, {},
                      {},   nullptr,      std::nullopt};
  operation.label = from.name.empty() ? "built-in" : from.name;
  operation.keys.header = from.key.header;
  operation.keys.aliases = from.key.aliases;
  for (const auto& [status, outcome] : from.outcomes) operation.outcomes[status] = outcome;
  if (!from.match.path.empty()) {
    auto path = PathTemplate::parse(from.match.path);
    if (!path) return pass_on(path);
    operation.path = std::move(*path);
  }
  return operation;
}

Result<std::unique_ptr<identity::CallerSource>> make_callers(const CallerConfig& config,
                                                             const Clock& clock) {
  switch (config.kind) {
    case CallerKind::header:
      if (config.map) return identity::mapped_source(config.argument, *config.map);
      return identity::header_source(config.argument, config.trusted_peers);
    case CallerKind::fixed:
      return identity::fixed_source(config.argument);
    case CallerKind::mtls:
      return identity::certificate_source(config.argument);
    case CallerKind::auth_request:
      return identity::auth_request_source(config.argument, config.answer_header);
    case CallerKind::jwt:
      break;
  }
  identity::JwtOptions options;
  options.claim = config.argument;
  options.keys = config.jwt.keys;
  options.algorithms = config.jwt.algorithms;
  options.issuer = config.jwt.issuer;
  options.audiences = config.jwt.audiences;
  options.require = config.require;
  options.leeway = config.jwt.leeway;
  return identity::jwt_source(options, clock);
}

Result<std::shared_ptr<UpstreamPool>> make_pool(Loop& loop, const GatewayConfig& config,
                                                const http::ParserLimits& limits) {
  const auto& upstream = config.upstream;
  if (upstream.addresses.empty())
    return failure(ErrorCode::invalid, "upstream: name at least one address");
  std::shared_ptr<TlsContext> tls;
  if (std::any_of(upstream.addresses.begin(), upstream.addresses.end(),
                  [](const UpstreamAddress& address) { return address.tls; })) {
    auto made = client_tls(upstream.tls);
    if (!made) return pass_on(made);
    tls = std::move(*made);
  }
  return std::make_shared<UpstreamPool>(loop, upstream, std::move(tls), limits);
}

}  // namespace

Matched Settings::match(std::string_view method, std::string_view canonical_path) const {
  if (config.operations.empty()) {
    if (method != "POST" && method != "PATCH") return {};
    return {&operations.front(), std::string(method) + " " + std::string(canonical_path)};
  }
  for (const auto& operation : operations) {
    if (operation.config.match.method == method && operation.path->matches(canonical_path))
      return {&operation, operation.config.name};
  }
  return {};
}

bool Settings::is_key_header(std::string_view name) const {
  return std::any_of(operations.begin(), operations.end(),
                     [&](const Operation& operation) { return operation.keys.contains(name); });
}

Result<std::shared_ptr<const Settings>> make_settings(Loop& loop, GatewayConfig config,
                                                      const Settings* before) {
  auto settings = std::make_shared<Settings>();
  settings->parser_limits.head = config.limits.head;
  settings->problem_style.dialect = config.dialect;
  settings->problem_style.documentation = config.documentation;
  auto operations = config.operations;
  if (operations.empty()) operations.push_back(config.built_in);
  for (const auto& from : operations) {
    auto operation = make_operation(config, from);
    if (!operation) {
      return failure(operation.error().code,
                     "operation \"" + from.name + "\": " + operation.error().message);
    }
    if (from.authorize) {
      auto service =
          AskedService::make(loop, *from.authorize, config.upstream, settings->parser_limits);
      if (!service) return pass_on(service);
      operation->authorize = std::move(*service);
    }
    if (from.reconcile) {
      auto mapping = ReconcileMapping::make(from);
      if (!mapping) {
        return failure(mapping.error().code,
                       "operation \"" + from.name + "\": reconcile: " + mapping.error().message);
      }
      operation->reconcile = std::move(*mapping);
    }
    settings->operations.push_back(std::move(*operation));
  }
  if (config.outcome_tokens) {
    auto tokens = OutcomeTokens::read(*config.outcome_tokens);
    if (!tokens) return pass_on(tokens);
    settings->outcome_tokens = std::move(*tokens);
  }
  auto callers = make_callers(config.caller, loop.clock());
  if (!callers) return pass_on(callers);
  settings->callers = std::move(*callers);
  if (config.caller.kind == CallerKind::auth_request) {
    auto service =
        AskedService::make(loop, config.caller.argument, config.upstream, settings->parser_limits);
    if (!service) return pass_on(service);
    settings->caller_service = std::move(*service);
  }
  if (before != nullptr && before->config.upstream == config.upstream &&
      before->config.limits.head == config.limits.head) {
    settings->pool = before->pool;
  } else {
    auto pool = make_pool(loop, config, settings->parser_limits);
    if (!pool) return pass_on(pool);
    settings->pool = std::move(*pool);
  }
  settings->config = std::move(config);
  return std::shared_ptr<const Settings>(std::move(settings));
}

}  // namespace einmal::gateway
