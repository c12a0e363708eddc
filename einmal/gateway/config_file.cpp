#include "einmal/gateway/config_file.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <utility>

#include "einmal/gateway/config_check.hpp"

#include <toml++/toml.h>

namespace einmal {

namespace {

/// Everything that is wrong, in the order of the file.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void add(const toml::source_region& where, std::string what) {
    found_.push_back({where.begin.line, std::move(what)});
  }
  bool empty() const { return found_.empty(); }
  Error error() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
    std::string text;
    for (const auto& each : found_) {
      if (!text.empty()) text += '\n';
      text += file_ + ":" + std::to_string(each.line) + ": " + each.what;
    }
    return Error{ErrorCode::invalid, text};
  }

 private:
  struct Found {
    toml::source_index line;
    std::string what;
  };
  std::string file_;
  std::vector<Found> found_;
};

template <class T>
struct Name {
  std::string_view name;
  T value;
};

/// One table being read. Every key that is asked for is known; `finish` reports the others.
class Section {
 public:
  Section(Problems& problems, const toml::table& table, std::string title)
      : problems_(problems), table_(table), title_(std::move(title)) {}

  const toml::node* find(std::string_view key) {
    known_.push_back(key);
    return table_.get(key);
  }
  void problem(const toml::node& at, std::string_view key, std::string_view what) {
    problems_.add(at.source(), title_ + " " + std::string(key) + ": " + std::string(what));
  }

  void text(std::string_view key, std::string& into) {
    const auto* node = find(key);
    if (!node) return;
    if (const auto value = node->value_exact<std::string>(); value && !value->empty())
      into = *value;
    else
      problem(*node, key, "a text is needed");
  }
  void text(std::string_view key, std::optional<std::string>& into) {
    std::string value;
    text(key, value);
    if (!value.empty()) into = value;
  }
  void texts(std::string_view key, std::vector<std::string>& into) {
    const auto* node = find(key);
    if (!node) return;
    std::vector<std::string> values;
    if (const auto* array = node->as_array()) {
      for (const auto& each : *array) {
        if (const auto value = each.value_exact<std::string>()) values.push_back(*value);
      }
      if (values.size() == array->size()) {
        into = std::move(values);
        return;
      }
    }
    problem(*node, key, "a list of texts is needed, such as [\"a\", \"b\"]");
  }
  void flag(std::string_view key, bool& into) {
    const auto* node = find(key);
    if (!node) return;
    if (const auto value = node->value_exact<bool>())
      into = *value;
    else
      problem(*node, key, "true or false is needed");
  }
  template <class T>
  void choice(std::string_view key, T& into, std::initializer_list<Name<T>> names) {
    const auto* node = find(key);
    if (!node) return;
    const auto value = node->value_exact<std::string>();
    std::string wanted;
    for (const auto& name : names) {
      if (value == name.name) {
        into = name.value;
        return;
      }
      wanted += (wanted.empty() ? "\"" : ", \"") + std::string(name.name) + "\"";
    }
    problem(*node, key, "one of " + wanted + " is needed");
  }
  /// A text that `parse` understands.
  template <class T, class Parse>
  void parsed(std::string_view key, T& into, Parse parse) {
    const auto* node = find(key);
    if (!node) return;
    const auto value = node->value_exact<std::string>();
    if (!value) return problem(*node, key, "a text is needed, in quotes");
    auto result = parse(*value);
    if (result)
      into = std::move(*result);
    else
      problem(*node, key, result.error().message);
  }
  void duration(std::string_view key, Duration& into, Duration least, Duration most) {
    bounded(key, into, least, most, parse_duration);
  }
  void size(std::string_view key, std::size_t& into, std::size_t least, std::size_t most) {
    bounded(key, into, least, most, parse_size);
  }
  template <class Number>
  void count(std::string_view key, Number& into, std::int64_t least, std::int64_t most) {
    const auto* node = find(key);
    if (!node) return;
    const auto value = node->value_exact<std::int64_t>();
    if (value && *value >= least && *value <= most)
      into = static_cast<Number>(*value);
    else
      problem(*node, key,
              "a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                  " is needed");
  }
  void text_table(std::string_view key, std::map<std::string, std::string>& into) {
    each_text(key, [&](const std::string& name, const std::string& value, const toml::node&) {
      into[name] = value;
    });
  }
  /// Calls `take(name, value, node)` for each member of a table of texts.
  template <class Take>
  void each_text(std::string_view key, Take take) {
    const auto* node = find(key);
    if (!node) return;
    const auto* members = node->as_table();
    if (!members) return problem(*node, key, "a table is needed, such as { name = \"value\" }");
    for (const auto& [name, member] : *members) {
      const toml::node& node_of_member = member;
      const auto value = node_of_member.value_exact<std::string>();
      if (value)
        take(std::string(name.str()), *value, node_of_member);
      else
        problem(member, key, "the value of " + std::string(name.str()) + " must be a text");
    }
  }
  /// Reads a table under `key` by `read(Section&)`, and reports what it does not know.
  template <class Read>
  void section(std::string_view key, std::string title, Read read) {
    const auto* node = find(key);
    if (!node) return;
    const auto* members = node->as_table();
    if (!members) return problem(*node, key, "a table is needed");
    Section inner(problems_, *members, std::move(title));
    read(inner);
    inner.finish();
  }

  void finish() {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      std::string known;
      for (const auto each : known_) known += (known.empty() ? "" : ", ") + std::string(each);
      problem(node, key.str(), "no such setting; there are: " + known);
    }
  }

 private:
  template <class T, class Parse>
  void bounded(std::string_view key, T& into, T least, T most, Parse parse) {
    const auto* node = find(key);
    if (!node) return;
    const auto value = node->value_exact<std::string>();
    if (!value) return problem(*node, key, "a number with its unit is needed, in quotes");
    const auto result = parse(*value);
    if (!result) return problem(*node, key, result.error().message);
    if (*result < least || *result > most)
      return problem(*node, key, *value + (*result < least ? " is too small" : " is too large"));
    into = *result;
  }

  Problems& problems_;
  const toml::table& table_;
  std::string title_;
  std::vector<std::string_view> known_;
};

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr Duration no_time{0};
constexpr Duration shortest = milliseconds(1);
constexpr Duration a_day = hours(24);
constexpr Duration ten_years = hours(24 * 3660);
constexpr std::size_t a_gib = std::size_t{1} << 30;

void read_times(Section& section, UpstreamTimes& times) {
  section.duration("connect_timeout", times.connect, shortest, minutes(5));
  section.duration("answer_timeout", times.answer, shortest, a_day);
  section.duration("late_answer", times.late_answer, no_time, a_day);
}

void read_upstream(Section& section, UpstreamConfig& upstream) {
  const auto* node = section.find("upstream");
  if (node) {
    std::vector<std::string> urls;
    if (const auto one = node->value_exact<std::string>()) urls.push_back(*one);
    if (node->is_array()) section.texts("upstream", urls);
    if (urls.empty()) section.problem(*node, "upstream", "a URL or a list of URLs is needed");
    for (const auto& url : urls) {
      const auto address = parse_upstream(url);
      if (address)
        upstream.addresses.push_back(*address);
      else
        section.problem(*node, "upstream", address.error().message);
    }
  }
  section.duration("upstream_idle", upstream.idle, shortest, hours(1));
  section.choice("upstream_reuse", upstream.reuse,
                 {{"pooled", UpstreamReuse::pooled}, {"never", UpstreamReuse::never}});
  section.count("upstream_connections", upstream.connections, 1, 65'536);
}

void read_gateway(Section& section, GatewayConfig& config) {
  section.parsed("listen", config.listen, parse_host_port);
  read_upstream(section, config.upstream);
  read_times(section, config.times);
  section.text("namespace", config.name_space);
  section.duration("drain", config.drain, no_time, hours(1));
  section.texts("retired", config.retired);
  section.text_table("hosts", config.hosts);
  section.choice(
      "discovery", config.discovery,
      {{"callers", Discovery::callers}, {"public", Discovery::public_}, {"off", Discovery::off}});
  section.choice("unmatched_key", config.unmatched_key,
                 {{"pass", UnmatchedKey::pass}, {"refuse", UnmatchedKey::refuse}});
  section.text("documentation", config.documentation);
  section.choice("dialect", config.dialect, {{"ietf", Dialect::ietf}, {"stripe", Dialect::stripe}});
}

void read_tls(Section& root, GatewayConfig& config) {
  const auto minimum = [](Section& section, TlsVersion& into) {
    section.choice("minimum", into, {{"1.2", TlsVersion::tls12}, {"1.3", TlsVersion::tls13}});
  };
  root.section("tls", "[tls]", [&](Section& section) {
    ServerTls tls;
    section.text("certificate", tls.certificate);
    section.text("key", tls.key);
    section.text("client_ca", tls.client_ca);
    minimum(section, tls.minimum);
    config.tls = tls;
  });
  root.section("upstream_tls", "[upstream_tls]", [&](Section& section) {
    auto& tls = config.upstream.tls;
    section.text("ca", tls.ca);
    section.text("server_name", tls.server_name);
    section.text("certificate", tls.certificate);
    section.text("key", tls.key);
    section.flag("verify", tls.verify);
    minimum(section, tls.minimum);
  });
}

void read_caller(Section& section, CallerConfig& caller) {
  if (const auto* node = section.find("source")) {
    const auto value = node->value_exact<std::string>();
    const auto read = parse_caller(value.value_or(""), caller);
    if (!read) section.problem(*node, "source", read.error().message);
  }
  section.texts("trusted_peers", caller.trusted_peers);
  section.text("map", caller.map);
  section.text_table("require", caller.require);
  section.text("answer_header", caller.answer_header);
  section.duration("positive_cache", caller.positive_cache, no_time, hours(1));
  section.text("keys", caller.jwt.keys);
  section.texts("algorithms", caller.jwt.algorithms);
  section.text("issuer", caller.jwt.issuer);
  section.texts("audiences", caller.jwt.audiences);
  section.duration("leeway", caller.jwt.leeway, no_time, minutes(10));
}

void read_limits(Section& section, GatewayLimits& limits) {
  section.size("buffer_budget", limits.buffer_budget, std::size_t{1} << 20, a_gib * 1024);
  section.count("connections", limits.connections, 1, 1'000'000);
  section.count("waiters", limits.waiters, 1, 1'000'000);
  section.count("waiters_per_key", limits.waiters_per_key, 1, 1'000'000);
  section.count("live_per_caller", limits.live_per_caller, 1, 1'000'000'000'000);
  section.count("uncertain_per_caller", limits.uncertain_per_caller, 1, 1'000'000'000'000);
  section.size("head", limits.head, 1024, std::size_t{1} << 20);
  section.duration("head_time", limits.head_time, shortest, hours(1));
  section.duration("body_time", limits.body_time, shortest, hours(1));
  section.size("body_rate", limits.body_rate, 1, a_gib);
  section.duration("keep_alive_time", limits.keep_alive_time, shortest, a_day);
}

void read_cors(Section& section, CorsConfig& cors) {
  section.texts("origins", cors.origins);
  section.texts("methods", cors.methods);
  section.texts("headers", cors.headers);
  section.texts("expose", cors.expose);
  section.flag("credentials", cors.credentials);
  section.duration("max_age", cors.max_age, no_time, a_day);
}

void read_fingerprint(Section& section, FingerprintConfig& fingerprint) {
  section.texts("headers", fingerprint.headers);
  section.texts("ignore", fingerprint.ignore);
  section.texts("only", fingerprint.only);
  section.flag("nfc", fingerprint.nfc);
  const auto* node = section.find("defaults");
  if (!node) return;
  const auto* members = node->as_table();
  if (!members) return section.problem(*node, "defaults", "a table is needed");
  for (const auto& [pointer, value] : *members) {
    std::ostringstream json;
    if (value.is_string() || value.is_number() || value.is_boolean())
      json << toml::json_formatter(value);
    else
      section.problem(value, "defaults", "a text, a number, true or false is needed");
    fingerprint.defaults[std::string(pointer.str())] = json.str();
  }
}

void read_outcomes(Section& section, std::map<int, DeclaredOutcome>& outcomes) {
  section.each_text(
      "outcomes", [&](const std::string& status, const std::string& value, const toml::node& node) {
        static const std::map<std::string, DeclaredOutcome> names{
            {"completed", DeclaredOutcome::completed},
            {"failed", DeclaredOutcome::failed},
            {"released", DeclaredOutcome::released},
            {"uncertain", DeclaredOutcome::uncertain}};
        const auto name = names.find(value);
        const bool is_status = status.size() == 3 && status >= "200" && status <= "599" &&
                               status.find_first_not_of("0123456789") == std::string::npos;
        if (is_status && name != names.end())
          outcomes[std::stoi(status)] = name->second;
        else
          section.problem(
              node, "outcomes",
              "STATUS = \"completed\", \"failed\", \"released\" or \"uncertain\" is needed");
      });
}

void read_key(Section& section, KeyConfig& key) {
  section.choice("key", key.required, {{"required", true}, {"optional", false}});
  section.text("key_header", key.header);
  section.texts("key_aliases", key.aliases);
  section.text("key_member", key.member);
}

void read_policies(Section& section, Policies& policies) {
  auto lease = policies.lease.value_or(seconds(30));
  section.duration("lease", lease, milliseconds(100), a_day);
  policies.lease = lease;
  section.choice("on_lease_expiry", policies.on_lease_expiry,
                 {{"uncertain", OnLeaseExpiry::uncertain}, {"takeover", OnLeaseExpiry::takeover}});
  section.duration("retention", policies.retention, shortest, ten_years);
  section.choice("after_expiry", policies.after_expiry,
                 {{"new", AfterExpiry::claim_anew}, {"refuse", AfterExpiry::refuse}});
  section.duration("tombstone", policies.tombstone, shortest, ten_years);
}

/// What [defaults] and [[operation]] share. `grace_given`: somebody has set store_grace.
void read_operation_settings(Section& section, OperationConfig& operation, bool& grace_given) {
  read_key(section, operation.key);
  section.choice(
      "in_flight", operation.in_flight,
      {{"reject", InFlight::reject}, {"wait", InFlight::wait}, {"operation", InFlight::operation}});
  section.duration("wait", operation.wait, shortest, hours(1));
  read_policies(section, operation.policies);
  section.size("max_request_body", operation.max_request_body, 1, a_gib);
  section.size("max_stored_body", operation.max_stored_body, 1, a_gib);
  section.section("fingerprint", "fingerprint",
                  [&](Section& inner) { read_fingerprint(inner, operation.fingerprint); });
  section.choice("upstream_key", operation.upstream_key,
                 {{"original", UpstreamKey::original},
                  {"derived", UpstreamKey::derived},
                  {"none", UpstreamKey::none}});
  read_outcomes(section, operation.outcomes);
  section.choice("replay", operation.replay,
                 {{"stored", ReplayMode::stored}, {"resource", ReplayMode::resource}});
  section.count("uncertain_status", operation.uncertain_status, 409, 504);
  grace_given |= section.find("store_grace") != nullptr;
  section.duration("store_grace", operation.store_grace, shortest, hours(1));
  section.choice("on_store_failure", operation.on_store_failure,
                 {{"closed", OnStoreFailure::closed}, {"open", OnStoreFailure::open}});
  section.text("authorize", operation.authorize);
  section.section("reconcile", "reconcile", [&](Section& inner) {
    ReconcileConfig reconcile;
    inner.text("request", reconcile.request);
    inner.texts("completed", reconcile.completed);
    inner.texts("failed", reconcile.failed);
    inner.texts("absent", reconcile.absent);
    operation.reconcile = reconcile;
  });
  Duration quiescence{};
  section.duration("quiescence", quiescence, shortest, ten_years);
  if (quiescence != Duration{}) operation.quiescence = quiescence;
  read_times(section, operation.times);
}

void read_operation(Section& section, OperationConfig& operation, bool grace_given) {
  section.text("name", operation.name);
  section.text("title", operation.title);
  const auto* node = section.find("match");
  if (node) {
    const auto value = node->value_exact<std::string>().value_or("");
    const auto space = value.find(' ');
    operation.match.method = value.substr(0, space);
    operation.match.path = space == std::string::npos ? std::string() : value.substr(space + 1);
    if (operation.match.path.empty())
      section.problem(*node, "match", "a method and a path are needed, such as \"POST /orders\"");
  }
  read_operation_settings(section, operation, grace_given);
  // The default fits the default lease; a shorter lease brings its own.
  const auto& lease = operation.policies.lease;
  if (!grace_given && lease && operation.store_grace >= *lease) operation.store_grace = *lease / 2;
}

/// Line by line: `[[operation]] "name"` names the operation whose settings are wrong.
void read_operations(Problems& problems, Section& root, const OperationConfig& defaults,
                     bool grace_given, GatewayConfig& config) {
  const auto* node = root.find("operation");
  if (!node) return;
  const auto* tables = node->as_array();
  if (!tables) return root.problem(*node, "operation", "[[operation]] is needed, in two brackets");
  for (const auto& each : *tables) {
    const auto* table = each.as_table();
    if (!table) return root.problem(each, "operation", "[[operation]] is needed");
    auto operation = defaults;
    const auto name = (*table)["name"].value_or(std::string());
    Section section(problems, *table, "operation \"" + name + "\"");
    read_operation(section, operation, grace_given);
    section.finish();
    const auto title = "operation \"" + operation.name + "\" ";
    for (const auto& problem : gateway::problems_of(operation))
      problems.add(each.source(), title + problem);
    for (const auto& before : config.operations) {
      const auto conflict = gateway::conflict_between(before, operation);
      if (!conflict.empty()) problems.add(each.source(), title + conflict);
    }
    config.operations.push_back(std::move(operation));
  }
}

}  // namespace

Result<GatewayConfig> parse_config(std::string_view text, const std::string& file) {
  Problems problems(file);
  toml::table parsed;
  try {
    parsed = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    problems.add(error.source(), std::string(error.description()));
    return tl::unexpected<Error>(problems.error());
  }
  GatewayConfig config;
  Section root(problems, parsed, "");
  root.section("gateway", "[gateway]", [&](Section& section) { read_gateway(section, config); });
  read_tls(root, config);
  root.section("store", "[store]", [&](Section& section) {
    section.text("url", config.store_url);
    section.duration("audit_retention", config.audit_retention, shortest, ten_years);
  });
  root.section("caller", "[caller]",
               [&](Section& section) { read_caller(section, config.caller); });
  root.section("metrics", "[metrics]", [&](Section& section) {
    HostPort listen;
    section.parsed("listen", listen, parse_host_port);
    config.metrics = listen;
  });
  root.section("limits", "[limits]",
               [&](Section& section) { read_limits(section, config.limits); });
  root.section("cors", "[cors]", [&](Section& section) {
    CorsConfig cors;
    read_cors(section, cors);
    config.cors = cors;
  });
  OperationConfig defaults;
  defaults.times = config.times;
  bool grace_given = false;
  root.section("defaults", "[defaults]",
               [&](Section& section) { read_operation_settings(section, defaults, grace_given); });
  read_operations(problems, root, defaults, grace_given, config);
  root.finish();
  for (const auto& problem : gateway::problems_of_rest(config))
    problems.add(parsed.source(), problem);
  if (!problems.empty()) return tl::unexpected<Error>(problems.error());
  return config;
}

Result<GatewayConfig> read_config(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure(ErrorCode::invalid, path + ": cannot be read; does it exist?");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_config(text, path);
}

}  // namespace einmal
