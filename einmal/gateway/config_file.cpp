#include "einmal/gateway/config_file.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "einmal/base/read_file.hpp"
#include "einmal/gateway/config_check.hpp"
#include "einmal/gateway/config_settings.hpp"

namespace einmal {

namespace {

using gateway::ConfigNode;
using gateway::Finding;

/// What is read of a file, what is wrong with it and where.
class Reading {
 public:
  explicit Reading(std::string file) { origins_.file = std::move(file); }

  ConfigOrigins& origins() { return origins_; }

  void complain(int line, const std::string& what) { found_.push_back({line, what}); }

  /// Reads a table under `path`. `title` begins each complaint.
  template <class Config>
  void read(const ConfigNode& table, const std::string& path, const std::string& title,
            const std::vector<gateway::Setting<Config>>& settings, Config& config) {
    origins_.lines[path] = table.line;
    if (table.kind != ConfigNode::Kind::table) return complain(table.line, title + ": a table");
    for (std::size_t i = 0; i < table.keys.size(); ++i) {
      origins_.lines[path + "." + table.keys[i]] = table.items[i].line;
    }
    gateway::read_members<Config>(table, settings, config,
                                  [&](const ConfigNode& at, const std::string& what) {
                                    complain(at.line, title + " " + what);
                                    wrong_.insert(path + "." + what.substr(0, what.find(':')));
                                  });
  }

  /// Reports a finding at the first of `paths` that stands in the file. One about a value that was
  /// complained about already says nothing new.
  void report(const std::vector<std::string>& paths, const std::string& what) {
    int line = 1;
    for (const auto& path : paths) {
      if (wrong_.count(path) != 0) return;
    }
    for (const auto& path : paths) {
      if (!origins_.has(path)) continue;
      line = origins_.lines[path];
      break;
    }
    complain(line, what);
  }

  bool good() const { return found_.empty(); }
  Error error() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
    std::string text;
    for (const auto& each : found_) {
      text += (text.empty() ? "" : "\n") + origins_.file + ":" + std::to_string(each.line) + ": " +
              each.what;
    }
    return Error{ErrorCode::invalid, text};
  }

 private:
  struct Found {
    int line;
    std::string what;
  };
  ConfigOrigins origins_;
  std::vector<Found> found_;
  std::set<std::string> wrong_;  // paths of values that were complained about
};

std::string title_of(const OperationConfig& operation) {
  return "operation \"" + operation.name + "\"";
}

/// "[gateway] listen" of "gateway.listen".
std::string title_of(const std::string& path) {
  const auto dot = path.find('.');
  if (dot == std::string::npos) return "[" + path + "]";
  return "[" + path.substr(0, dot) + "] " + path.substr(dot + 1);
}

/// Where a finding about an operation may stand: in it, in [defaults], in another table, and else
/// at its head.
std::vector<std::string> places(const Finding& finding, const std::string& operation) {
  const auto elsewhere = [](const std::string& key) { return key.find('.') != std::string::npos; };
  std::vector<std::string> paths;
  for (const auto* table : {operation.c_str(), "defaults"}) {
    for (const auto& key : finding.keys) {
      if (!elsewhere(key)) paths.push_back(table + ("." + key));
    }
  }
  std::copy_if(finding.keys.begin(), finding.keys.end(), std::back_inserter(paths), elsewhere);
  paths.push_back(operation);
  return paths;
}

void read_sections(const ConfigNode& root, Reading& reading, GatewayConfig& config) {
  std::string known = "defaults, operation";
  for (const auto& section : gateway::sections()) {
    known.append(", ").append(section.name);
    const auto* table = root.member(section.name);
    if (table == nullptr) continue;
    section.make(config);
    const std::string name(section.name);
    reading.read(*table, name, "[" + name + "]", section.settings, config);
  }
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    const auto& key = root.keys[i];
    const auto& all = gateway::sections();
    if (key == "defaults" || key == "operation" ||
        std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == key; })) {
      continue;
    }
    reading.complain(root.items[i].line, "[" + key + "]: no such table; there are: " + known);
  }
}

void read_operations(const ConfigNode& root, Reading& reading, const OperationConfig& defaults,
                     GatewayConfig& config) {
  const auto* tables = root.member("operation");
  if (tables == nullptr) return;
  if (tables->kind != ConfigNode::Kind::list) {
    return reading.complain(tables->line, "[[operation]] is needed, in two brackets");
  }
  auto settings = gateway::own_operation_settings();
  const auto& shared = gateway::operation_settings();
  settings.insert(settings.end(), shared.begin(), shared.end());
  for (const auto& table : tables->items) {
    auto operation = defaults;
    if (const auto* name = table.member("name")) operation.name = name->text;
    const auto path = "operation." + std::to_string(config.operations.size());
    reading.read(table, path, title_of(operation), settings, operation);
    config.operations.push_back(std::move(operation));
  }
}

/// The default fits the default lease; a shorter lease brings its own.
void fit_store_grace(OperationConfig& operation, bool given) {
  const auto& lease = operation.policies.lease;
  if (!given && lease && operation.store_grace >= *lease) operation.store_grace = *lease / 2;
}

void fit_store_graces(GatewayConfig& config, const ConfigOrigins& origins) {
  const bool by_default = origins.has("defaults.store_grace");
  fit_store_grace(config.built_in, by_default);
  for (std::size_t i = 0; i < config.operations.size(); ++i) {
    const auto path = "operation." + std::to_string(i) + ".store_grace";
    fit_store_grace(config.operations[i], by_default || origins.has(path));
  }
}

void check_operations(const GatewayConfig& config, Reading& reading) {
  for (std::size_t i = 0; i < config.operations.size(); ++i) {
    const auto& operation = config.operations[i];
    auto findings = gateway::findings_in(operation, config);
    for (std::size_t j = 0; j < i; ++j) {
      const auto more = gateway::findings_between(config.operations[j], operation);
      findings.insert(findings.end(), more.begin(), more.end());
    }
    for (const auto& finding : findings) {
      reading.report(places(finding, "operation." + std::to_string(i)),
                     title_of(operation) + " " + finding.keys.front() + ": " + finding.what);
    }
  }
}

void check_rest(const GatewayConfig& config, Reading& reading) {
  auto findings = gateway::findings_in_rest(config);
  const auto idle = gateway::findings_without_effect(
      config, [&](const std::string& path) { return reading.origins().has(path); });
  findings.insert(findings.end(), idle.begin(), idle.end());
  for (const auto& finding : findings) {
    auto paths = finding.keys;
    paths.push_back(finding.keys.front().substr(0, finding.keys.front().find('.')));
    reading.report(paths, title_of(finding.keys.front()) + ": " + finding.what);
  }
}

/// The built-in operation is checked as one with a name and a match would be.
std::vector<Finding> findings_in_built_in(const GatewayConfig& config) {
  auto operation = config.built_in;
  operation.name = "built-in";
  operation.match = {"POST", "/"};
  return gateway::findings_in(operation, config);
}

}  // namespace

Result<ReadConfig> parse_config_with_origins(std::string_view text, const std::string& file) {
  const auto root = gateway::parse_toml(text, file);
  if (!root) return pass_on(root);
  Reading reading(file);
  GatewayConfig config;
  read_sections(*root, reading, config);
  OperationConfig defaults;
  defaults.times = config.built_in.times = config.times;
  if (const auto* table = root->member("defaults")) {
    reading.read(*table, "defaults", "[defaults]", gateway::operation_settings(), defaults);
    gateway::read_members<OperationConfig>(*table, gateway::operation_settings(), config.built_in,
                                           [](const ConfigNode&, const std::string&) {});
  }
  read_operations(*root, reading, defaults, config);
  fit_store_graces(config, reading.origins());
  check_operations(config, reading);
  if (config.operations.empty()) {
    for (const auto& finding : findings_in_built_in(config)) {
      reading.report(places(finding, "defaults"),
                     "[defaults] " + finding.keys.front() + ": " + finding.what);
    }
  }
  check_rest(config, reading);
  if (!reading.good()) return tl::unexpected<Error>(reading.error());
  return ReadConfig{std::move(config), std::move(reading.origins())};
}

Result<GatewayConfig> parse_config(std::string_view text, const std::string& file) {
  auto read = parse_config_with_origins(text, file);
  if (!read) return pass_on(read);
  return std::move(read->config);
}

Result<ReadConfig> read_config_with_origins(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return pass_on(text);
  return parse_config_with_origins(*text, path);
}

Result<GatewayConfig> read_config(const std::string& path) {
  auto read = read_config_with_origins(path);
  if (!read) return pass_on(read);
  return std::move(read->config);
}

Result<void> check_config(const GatewayConfig& config) {
  std::string text;
  const auto add = [&](const std::string& title, const Finding& finding) {
    text.append(text.empty() ? "" : "\n").append(title).append(": ").append(finding.what);
  };
  for (const auto& finding : gateway::findings_in_rest(config)) {
    add(title_of(finding.keys.front()), finding);
  }
  for (std::size_t i = 0; i < config.operations.size(); ++i) {
    const auto& operation = config.operations[i];
    const auto title = title_of(operation) + " ";
    for (const auto& finding : gateway::findings_in(operation, config)) {
      add(title + finding.keys.front(), finding);
    }
    for (std::size_t j = 0; j < i; ++j) {
      for (const auto& finding : gateway::findings_between(config.operations[j], operation)) {
        add(title + finding.keys.front(), finding);
      }
    }
  }
  if (config.operations.empty()) {
    for (const auto& finding : findings_in_built_in(config)) {
      add("built-in operation " + finding.keys.front(), finding);
    }
  }
  if (!text.empty()) return failure(ErrorCode::invalid, text);
  return {};
}

}  // namespace einmal
