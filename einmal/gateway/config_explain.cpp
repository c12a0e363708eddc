#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "einmal/gateway/config_file.hpp"
#include "einmal/gateway/config_schema.hpp"

/// The text of `--explain`.

namespace einmal {

namespace {

using gateway::Setting;

/// Lines of `key = value  # where it came from`, the values below each other.
class Explained {
 public:
  explicit Explained(const ConfigOrigins& origins) : origins_(origins) {}

  void heading(const std::string& text) {
    text_.append(text_.empty() ? "" : "\n").append(text).append("\n");
  }
  /// What is not set stands there as a comment: the text can be read as TOML.
  void value(std::string_view key, const std::string& value, const std::string& origin) {
    pad((value == "-" ? "# " : "") + std::string(key), 21);
    text_ += "= ";
    pad(value, 28);
    text_.append(" # ").append(origin).append("\n");
  }
  void plain(const std::string& line) { text_.append(line).append("\n"); }

  /// Where the value at `path` came from; empty if it does not stand in the file.
  std::string line_of(const std::string& path) const {
    const auto found = origins_.lines.find(path);
    if (found == origins_.lines.end()) return {};
    return origins_.file + ":" + std::to_string(found->second);
  }
  std::string text() { return std::move(text_); }

 private:
  void pad(const std::string& text, std::size_t width) {
    text_.append(text).append(text.size() < width ? width - text.size() : 0, ' ');
  }

  const ConfigOrigins& origins_;
  std::string text_;
};

void explain_section(const gateway::Section& section, const GatewayConfig& config, Explained& out) {
  if (!section.present(config)) return;
  const std::string name(section.name);
  out.heading("[" + name + "]");
  for (const auto& setting : section.settings) {
    const auto line = out.line_of(name + "." + std::string(setting.key));
    out.value(setting.key, setting.show(config), line.empty() ? "default" : line);
  }
}

std::string origin_of(const std::string& key, const std::string& path,
                      const OperationConfig& operation, const Explained& out) {
  if (const auto line = out.line_of(path + "." + key); !line.empty()) return line;
  if (const auto line = out.line_of("defaults." + key); !line.empty()) {
    return "[defaults] " + line;
  }
  const bool from_gateway =
      key == "connect_timeout" || key == "answer_timeout" || key == "late_answer";
  if (const auto line = out.line_of("gateway." + key); from_gateway && !line.empty()) {
    return "[gateway] " + line;
  }
  if (key == "store_grace" && operation.store_grace != OperationConfig{}.store_grace) {
    return "default: half the lease";
  }
  return "default";
}

/// "200-306 309-399": the statuses for which `belongs` holds, as ranges.
template <class Belongs>
std::string ranges(Belongs belongs) {
  std::string text;
  for (int first = 200; first <= 599; ++first) {
    if (!belongs(first)) continue;
    int last = first;
    while (last < 599 && belongs(last + 1)) ++last;
    text.append(text.empty() ? "" : " ").append(std::to_string(first));
    if (last > first) text.append("-").append(std::to_string(last));
    first = last;
  }
  return text.empty() ? "-" : text;
}

void explain_statuses(const OperationConfig& operation, Explained& out) {
  struct Line {
    std::string_view title;
    http::Outcome outcome;
    Effect effect;
  };
  constexpr std::array<Line, 5> lines{{{"completed", http::Outcome::completed, Effect::known},
                                       {"failed", http::Outcome::failed, Effect::known},
                                       {"failed, unknown", http::Outcome::failed, Effect::unknown},
                                       {"released", http::Outcome::released, Effect::known},
                                       {"uncertain", http::Outcome::uncertain, Effect::known}}};
  out.plain("# what a status of the upstream means, unless it says Einmal-Outcome itself:");
  const http::HeaderLines silent;
  for (const auto& line : lines) {
    const auto statuses = ranges([&](int status) {
      const auto verdict = http::classify(status, silent, operation.outcomes);
      return verdict.outcome == line.outcome && verdict.effect == line.effect;
    });
    const auto rest = line.outcome == http::Outcome::uncertain ? " and anything else" : "";
    out.plain("#   " + std::string(line.title) + std::string(18 - line.title.size(), ' ') +
              statuses + rest);
  }
}

void explain_operation(const OperationConfig& operation, const std::string& path, Explained& out) {
  for (const auto& setting : gateway::operation_settings()) {
    const std::string key(setting.key);
    out.value(key, setting.show(operation), origin_of(key, path, operation, out));
  }
  explain_statuses(operation, out);
}

}  // namespace

std::string explain_config(const GatewayConfig& config, const ConfigOrigins& origins) {
  Explained out(origins);
  for (const auto& section : gateway::sections()) explain_section(section, config, out);
  for (std::size_t i = 0; i < config.operations.size(); ++i) {
    const auto& operation = config.operations[i];
    const auto path = "operation." + std::to_string(i);
    out.heading("[[operation]]");
    for (const auto& setting : gateway::own_operation_settings()) {
      const auto line = out.line_of(path + "." + std::string(setting.key));
      out.value(setting.key, setting.show(operation), line.empty() ? "default" : line);
    }
    explain_operation(operation, path, out);
  }
  if (config.operations.empty()) {
    out.heading("# no [[operation]]: every POST and PATCH, named by method and canonical path");
    explain_operation(config.built_in, "built-in", out);
  }
  return out.text();
}

}  // namespace einmal
