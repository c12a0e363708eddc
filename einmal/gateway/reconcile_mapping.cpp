#include "einmal/gateway/reconcile_mapping.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fstream>

#include "einmal/core/derived_key.hpp"
#include "einmal/fingerprint/canonical_json.hpp"
#include "einmal/http/head.hpp"

namespace einmal::gateway {

namespace json = boost::json;

namespace {

std::optional<json::value> document_of(const std::string& body) {
  boost::system::error_code error;
  json::value document = json::parse(body, error);
  if (error) return std::nullopt;
  return document;
}

const json::value* at(const json::value& document, const std::string& pointer) {
  boost::system::error_code error;
  const json::value* found = document.find_pointer(pointer, error);
  return error ? nullptr : found;
}

std::string text_of(const json::value& value) {
  if (const auto* text = value.if_string()) return std::string(*text);
  return json::serialize(value);
}

/// RFC 3986 section 2.3: everything but the unreserved characters is escaped.
void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
}

/// Puts `value(name)` in the place of each `{name}`; nothing for a name it does not know, and for
/// braces that do not pair.
template <class Value>
std::optional<std::string> filled(std::string_view pattern, Value value) {
  std::string out;
  while (true) {
    const auto open = pattern.find('{');
    out += pattern.substr(0, open);
    if (open == std::string_view::npos) return out;
    const auto close = pattern.find('}', open);
    if (close == std::string_view::npos) return std::nullopt;
    const std::optional<std::string> put = value(pattern.substr(open + 1, close - open - 1));
    if (!put) return std::nullopt;
    append_escaped(out, *put);
    pattern.remove_prefix(close + 1);
  }
}

bool means(const ReconcileCondition& condition, int status,
           const std::optional<json::value>& document) {
  if (condition.status != status) return false;
  if (!condition.pointer) return true;
  const json::value* found = document ? at(*document, *condition.pointer) : nullptr;
  if (found == nullptr || condition.json.empty()) return found != nullptr;
  const auto here = canonical_json(json::serialize(*found), JsonNumbers::exact);
  const auto wanted = canonical_json(condition.json, JsonNumbers::exact);
  return here && wanted && *here == *wanted;
}

Result<std::vector<ReconcileCondition>> conditions(const std::vector<std::string>& texts) {
  std::vector<ReconcileCondition> made;
  for (const auto& text : texts) {
    auto condition = parse_reconcile_condition(text);
    if (!condition) return pass_on(condition);
    made.push_back(std::move(*condition));
  }
  return made;
}

/// Lines `Name: value` of a file; empty ones and those that begin with # are left out. What stands
/// in it is never part of a message.
Result<http::HeaderLines> read_credentials(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failure(ErrorCode::invalid, "credentials: " + path + " cannot be read");
  http::HeaderLines lines;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const auto parsed = http::parse_stored_headers(line + "\r\n");
    if (!parsed || parsed->size() != 1) {
      return failure(ErrorCode::invalid, "credentials: " + path + ":" + std::to_string(number) +
                                             ": a header line, Name: value, is needed");
    }
    const auto only = *parsed->begin();
    lines.add(only.name, only.value);
  }
  if (file.bad()) return failure(ErrorCode::invalid, "credentials: " + path + " cannot be read");
  return lines;
}

}  // namespace

Result<ReconcileMapping> ReconcileMapping::make(const OperationConfig& operation) {
  ReconcileMapping mapping;
  mapping.config_ = *operation.reconcile;
  mapping.upstream_key_ = operation.upstream_key;
  mapping.max_stored_body_ = operation.max_stored_body;
  auto completed = conditions(mapping.config_.completed);
  if (!completed) return pass_on(completed);
  auto failed = conditions(mapping.config_.failed);
  if (!failed) return pass_on(failed);
  auto absent = conditions(mapping.config_.absent);
  if (!absent) return pass_on(absent);
  mapping.completed_ = std::move(*completed);
  mapping.failed_ = std::move(*failed);
  mapping.absent_ = std::move(*absent);
  bool names_it = false;
  const auto target = filled(mapping.config_.request, [&](std::string_view name) {
    const bool is_key = name == "key" && operation.upstream_key != UpstreamKey::none;
    names_it = names_it || is_key || name == "operation-id";
    const bool known = is_key || name == "operation-id" || name == "caller";
    return known ? std::optional<std::string>("x") : std::nullopt;
  });
  if (!target || !names_it) {
    return failure(ErrorCode::invalid,
                   "request: it must name the operation by {key} (as the upstream got it, so not "
                   "with upstream_key = \"none\") or {operation-id}; {caller} may stand there too");
  }
  if (!filled(mapping.config_.location, [](std::string_view name) {
        return name.starts_with('/') ? std::optional<std::string>("x") : std::nullopt;
      })) {
    return failure(
        ErrorCode::invalid,
        "location: a path with JSON pointers in braces is needed, such as /orders/{/id}");
  }
  if (!mapping.config_.result.empty() && !mapping.config_.result.starts_with('/'))
    return failure(ErrorCode::invalid, "result: a JSON pointer is needed, such as /orders/0");
  if (!mapping.config_.credentials.empty()) {
    auto credentials = read_credentials(mapping.config_.credentials);
    if (!credentials) return pass_on(credentials);
    mapping.credentials_ = std::move(*credentials);
  }
  return mapping;
}

http::RequestHead ReconcileMapping::request(const Scope& scope, const OperationId& id) const {
  http::RequestHead head;
  head.method = "GET";
  const std::string pattern = config_.request.substr(config_.request.find(' ') + 1);
  head.target = *filled(pattern, [&](std::string_view name) -> std::optional<std::string> {
    if (name == "caller") return scope.caller();
    if (name == "operation-id") return id.text();
    return upstream_key_ == UpstreamKey::derived ? derive_key(scope) : scope.key();
  });
  head.headers = credentials_;
  head.headers.add("Accept", "application/json");
  head.headers.add("Accept-Encoding", "identity");
  return head;
}

std::optional<StoredResult> ReconcileMapping::result_of(const SmallAnswer& answer,
                                                        int status) const {
  StoredResult result;
  result.status = status;
  http::HeaderLines lines;
  std::optional<json::value> document;
  if (!config_.result.empty() || !config_.location.empty()) {
    document = document_of(answer.body);
    if (!document) return std::nullopt;
  }
  const json::value* part = document ? at(*document, config_.result) : nullptr;
  if (document && part == nullptr) return std::nullopt;
  if (config_.result.empty()) {
    result.body = answer.body;
    if (const auto type = answer.head.headers.first("Content-Type"))
      lines.add("Content-Type", *type);
  } else {
    result.body = json::serialize(*part);
    lines.add("Content-Type", "application/json");
  }
  if (!config_.location.empty()) {
    const auto location =
        filled(config_.location, [&](std::string_view pointer) -> std::optional<std::string> {
          const json::value* value = at(*part, std::string(pointer));
          if (value == nullptr) return std::nullopt;
          return text_of(*value);
        });
    if (!location) return std::nullopt;
    lines.add("Location", *location);
    result.resource_id = *location;
  }
  if (result.body.size() > max_stored_body_) {
    result.body.clear();
    result.body_kept = BodyKept::too_large;
  }
  result.headers = http::serialize(lines);
  return result;
}

OutcomeFinding ReconcileMapping::judge(const SmallAnswer& answer) const {
  const int status = answer.head.status;
  const auto document = document_of(answer.body);
  const auto any = [&](const std::vector<ReconcileCondition>& conditions) {
    return std::any_of(conditions.begin(), conditions.end(), [&](const ReconcileCondition& each) {
      return means(each, status, document);
    });
  };
  const bool completed = any(completed_);
  const bool failed = any(failed_);
  const bool absent = any(absent_);
  OutcomeFinding finding;
  finding.evidence = config_.request + " was answered " + std::to_string(status);
  if (int{completed} + int{failed} + int{absent} != 1) {
    finding.evidence += completed || failed || absent ? ", which means two things at once"
                                                      : ", which means nothing here";
    return finding;
  }
  if (absent) {
    finding.what = finding::Absent{};
    finding.evidence += ": absent";
    return finding;
  }
  auto result = result_of(answer, completed ? config_.status : config_.failed_status);
  if (!result) {
    finding.evidence += ", but `result` or `location` is not in it";
    return finding;
  }
  finding.evidence += completed ? ": completed" : ": failed";
  if (completed) {
    finding.what = finding::Completed{std::move(*result)};
  } else {
    finding.what = finding::Failed{std::move(*result)};
  }
  return finding;
}

OutcomeFinding ReconcileMapping::no_answer() const {
  OutcomeFinding finding;
  finding.evidence = config_.request + " was not answered";
  return finding;
}

}  // namespace einmal::gateway
