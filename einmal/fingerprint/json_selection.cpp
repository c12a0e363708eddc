#include "einmal/fingerprint/json_selection.hpp"

#include <algorithm>

#include "einmal/fingerprint/canonical_json.hpp"
#include "einmal/fingerprint/json_grammar.hpp"

namespace einmal {

namespace {

using Pointer = JsonSelection::Pointer;

std::string spelled(const Pointer& pointer) {
  std::string out;
  for (const auto& token : pointer) out.append("/").append(pointer_token(token));
  return out;
}

tl::unexpected<Error> bad_pointer(const char* option, std::string_view pointer,
                                  std::string_view why) {
  return failure(ErrorCode::invalid, std::string("fingerprint ") + option + " pointer " +
                                         quoted_for_reason(pointer) + ": " + std::string(why));
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

Result<Pointer> parse_pointer(const char* option, std::string_view text, bool nfc) {
  if (text.empty()) {
    return bad_pointer(option, text, "the whole body; name a member, such as \"/sent_at\"");
  }
  if (text.front() != '/') return bad_pointer(option, text, "must begin with / (RFC 6901)");
  if (!is_utf8(text)) return bad_pointer(option, text, "is not UTF-8");
  Pointer pointer;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/') {
      pointer.emplace_back();
      continue;
    }
    char c = text[i];
    if (c == '~') {
      const char escaped = ++i < text.size() ? text[i] : '\0';
      if (escaped != '0' && escaped != '1') {
        return bad_pointer(option, text, "~ must be ~0 (for ~) or ~1 (for /)");
      }
      c = escaped == '0' ? '~' : '/';
    }
    pointer.back().push_back(c);
  }
  if (pointer.size() > max_json_depth) return bad_pointer(option, text, "is deeper than any body");
  if (nfc) std::transform(pointer.begin(), pointer.end(), pointer.begin(), to_nfc);
  return pointer;
}

std::optional<std::size_t> array_index(std::string_view token) {
  if (token.empty() || token.size() > 10 || (token.size() > 1 && token[0] == '0')) return {};
  std::size_t index = 0;
  for (const char c : token) {
    if (c < '0' || c > '9') return {};
    index = index * 10 + static_cast<std::size_t>(c - '0');
  }
  return index;
}

bool covers(const Pointer& upper, const Pointer& lower) {
  return upper.size() <= lower.size() && std::equal(upper.begin(), upper.end(), lower.begin());
}

/// Sorted, without those below another one (a pointer sorts directly before what it covers).
Result<std::vector<Pointer>> parse_pointers(const char* option,
                                            const std::vector<std::string>& texts, bool nfc) {
  std::vector<Pointer> all;
  for (const auto& text : texts) {
    auto pointer = parse_pointer(option, text, nfc);
    if (!pointer) return pass_on(pointer);
    all.push_back(std::move(*pointer));
  }
  std::sort(all.begin(), all.end());
  std::vector<Pointer> kept;
  for (auto& pointer : all) {
    if (kept.empty() || !covers(kept.back(), pointer)) kept.push_back(std::move(pointer));
  }
  return kept;
}

}  // namespace

const JsonSelection::Node* JsonSelection::Node::find(std::string_view name) const {
  const auto child = std::lower_bound(
      children.begin(), children.end(), name,
      [](const Child& a, std::string_view b) { return compare_utf16(a.token, b) < 0; });
  return child != children.end() && child->token == name ? child->node.get() : nullptr;
}

const JsonSelection::Node* JsonSelection::Node::find(std::size_t index) const {
  for (const auto& child : children) {
    if (child.index == index) return child.node.get();
  }
  return nullptr;
}

JsonSelection::Node& JsonSelection::at(const Pointer& pointer) {
  Node* node = root_.get();
  for (const auto& token : pointer) {
    const auto place = std::lower_bound(
        node->children.begin(), node->children.end(), token,
        [](const Node::Child& a, const std::string& b) { return compare_utf16(a.token, b) < 0; });
    if (place != node->children.end() && place->token == token) {
      node = place->node.get();
    } else {
      node = node->children.insert(place, {token, array_index(token), std::make_unique<Node>()})
                 ->node.get();
    }
  }
  return *node;
}

Result<JsonSelection> JsonSelection::make(const std::vector<std::string>& ignore,
                                          const std::vector<std::string>& only,
                                          const std::map<std::string, std::string>& defaults,
                                          bool nfc) {
  auto ignored = parse_pointers("ignore", ignore, nfc);
  if (!ignored) return pass_on(ignored);
  auto selected = parse_pointers("only", only, nfc);
  if (!selected) return pass_on(selected);
  JsonSelection selection;
  selection.ignore_ = std::move(*ignored);
  selection.only_ = std::move(*selected);
  for (const auto& pointer : selection.ignore_) {
    for (const auto& part : selection.only_) {
      if (covers(pointer, part)) return bad_pointer("only", spelled(part), "is ignored as well");
    }
    selection.at(pointer).ignored = true;
  }
  for (const auto& [text, value] : defaults) {
    auto pointer = parse_pointer("defaults", text, nfc);
    if (!pointer) return pass_on(pointer);
    auto canonical = canonical_json(value, JsonNumbers::exact);
    if (!canonical) return bad_pointer("defaults", text, canonical.error().message);
    Node& node = selection.at(*pointer);
    if (node.default_value) return bad_pointer("defaults", text, "is given twice");
    node.default_value = std::make_unique<Value>();
    node.default_value->text = *canonical;
    if (node.default_value->document.parse(node.default_value->text, nfc)) {
      return bad_pointer("defaults", text, "the value has no single meaning");
    }
    selection.defaults_.emplace_back(std::move(*pointer), std::move(*canonical));
  }
  std::sort(selection.defaults_.begin(), selection.defaults_.end());
  return selection;
}

void JsonSelection::write_definition(CanonicalWriter& out) const {
  for (const auto* list : {&ignore_, &only_}) {
    out.count(list->size());
    for (const auto& pointer : *list) out.bytes(spelled(pointer));
  }
  out.count(defaults_.size());
  for (const auto& [pointer, text] : defaults_) {
    out.bytes(spelled(pointer));
    out.bytes(text);
  }
}

}  // namespace einmal
