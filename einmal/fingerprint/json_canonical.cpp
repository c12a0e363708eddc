#include <algorithm>
#include <vector>

#include "einmal/fingerprint/decimal.hpp"
#include "einmal/fingerprint/json_selection.hpp"

namespace einmal {

namespace {

using Node = JsonDocument::Node;
using Kind = JsonDocument::Kind;
using Rules = JsonSelection::Node;

/// A value where it stands: in the body, or in a declared default.
struct Place {
  const JsonDocument* document;
  std::uint32_t index;
  const Rules* rules;  ///< What is declared about it and below; null: all of it counts.
};

struct Member {
  std::string_view name;
  Place value;
};

class JsonWriter {
 public:
  explicit JsonWriter(CanonicalWriter& out) : out_(out) {}

  /// Recursion is as deep as the document, at most `max_json_depth`.
  void value(const JsonDocument& document, std::uint32_t index) {
    const Node& node = document.node(index);
    switch (node.kind()) {
      case Kind::array: {
        out_.byte('a');
        out_.count(node.size());
        const std::uint32_t end = document.next(index);
        for (std::uint32_t at = index + 1; at != end; at = document.next(at)) {
          value(document, at);
        }
        return;
      }
      case Kind::object: {
        out_.byte('o');
        out_.count(node.size());
        const std::uint32_t* const end = document.sorted_end(index);
        for (const std::uint32_t* name = document.sorted_begin(index); name != end; ++name) {
          out_.bytes(document.name(*name));
          value(document, *name + 1);
        }
        return;
      }
      default:
        scalar(document, node);
    }
  }

  void value(const Place& place) {
    const Node& node = place.document->node(place.index);
    if (place.rules == nullptr || place.rules->children.empty()) {
      value(*place.document, place.index);
    } else if (node.kind() == Kind::object) {
      object(place, node);
    } else if (node.kind() == Kind::array) {
      array(place, node);
    } else {
      scalar(*place.document, node);
    }
  }

 private:
  void scalar(const JsonDocument& document, const Node& node) {
    switch (node.kind()) {
      case Kind::null_value:
        return out_.byte('n');
      case Kind::true_value:
        return out_.byte('t');
      case Kind::false_value:
        return out_.byte('f');
      case Kind::number:
        return number(exact_decimal(document.text(node)));
      default:
        out_.byte('s');
        return out_.bytes(document.text(node));
    }
  }

  void number(const Decimal& value) {
    if (value.is_zero()) return out_.byte('0');
    out_.byte(value.negative ? '-' : '+');
    out_.count(value.head.size() + value.tail.size());
    out_.raw(value.head);
    out_.raw(value.tail);
    out_.signed_number(value.exponent);
  }

  void object(const Place& place, const Node& node);
  void array(const Place& place, const Node& node);

  CanonicalWriter& out_;
};

const std::uint32_t* find_member(const JsonDocument& document, std::uint32_t object,
                                 std::string_view name) {
  const auto* const end = document.sorted_end(object);
  const auto* const found = std::lower_bound(
      document.sorted_begin(object), end, name, [&](std::uint32_t member, std::string_view wanted) {
        return compare_utf16(document.name(member), wanted) < 0;
      });
  return found != end && document.name(*found) == name ? found : nullptr;
}

void JsonWriter::object(const Place& place, const Node& node) {
  const JsonDocument& document = *place.document;
  std::vector<Member> members;
  members.reserve(node.size() + place.rules->children.size());
  const auto* const end = document.sorted_end(place.index);
  for (const auto* name = document.sorted_begin(place.index); name != end; ++name) {
    const Rules* rules = place.rules->find(document.name(*name));
    if (rules != nullptr && rules->ignored) continue;
    members.push_back({document.name(*name), {&document, *name + 1, rules}});
  }
  const std::size_t present = members.size();
  for (const auto& [token, index, rules] : place.rules->children) {
    if (!rules->default_value || rules->ignored || find_member(document, place.index, token))
      continue;
    members.push_back({token, {&rules->default_value->document, JsonDocument::root, rules.get()}});
  }
  std::inplace_merge(
      members.begin(), members.begin() + static_cast<std::ptrdiff_t>(present), members.end(),
      [](const Member& a, const Member& b) { return compare_utf16(a.name, b.name) < 0; });
  out_.byte('o');
  out_.count(members.size());
  for (const auto& member : members) {
    out_.bytes(member.name);
    value(member.value);
  }
}

void JsonWriter::array(const Place& place, const Node& node) {
  const JsonDocument& document = *place.document;
  std::vector<Place> elements;
  elements.reserve(node.size());
  std::size_t position = 0;
  const std::uint32_t end = document.next(place.index);
  for (std::uint32_t at = place.index + 1; at != end; at = document.next(at)) {
    const Rules* rules = place.rules->find(position++);
    if (rules == nullptr || !rules->ignored) elements.push_back({&document, at, rules});
  }
  out_.byte('a');
  out_.count(elements.size());
  for (const auto& element : elements) value(element);
}

/// Where `token` leads from `place`, with declared defaults in the place of absent members.
std::optional<Place> step(const Place& place, const std::string& token) {
  const JsonDocument& document = *place.document;
  const Node& node = document.node(place.index);
  const Rules* const rules = place.rules == nullptr ? nullptr : place.rules->find(token);
  if (node.kind() == Kind::object) {
    if (const auto* member = find_member(document, place.index, token)) {
      return Place{&document, *member + 1, rules};
    }
    if (rules != nullptr && rules->default_value) {
      return Place{&rules->default_value->document, JsonDocument::root, rules};
    }
  } else if (node.kind() == Kind::array) {
    std::size_t position = 0;
    const std::uint32_t end = document.next(place.index);
    for (std::uint32_t at = place.index + 1; at != end; at = document.next(at)) {
      if (std::to_string(position++) == token) return Place{&document, at, rules};
    }
  }
  return std::nullopt;
}

}  // namespace

void write_json(CanonicalWriter& out, const JsonDocument& document,
                const JsonSelection& selection) {
  JsonWriter writer(out);
  const Place root{&document, JsonDocument::root, &selection.root()};
  if (selection.only().empty()) return writer.value(root);
  out.byte('p');
  for (const auto& pointer : selection.only()) {
    std::optional<Place> place = root;
    for (auto token = pointer.begin(); place && token != pointer.end(); ++token) {
      place = step(*place, *token);
    }
    out.byte(place ? 1 : 0);
    if (place) writer.value(*place);
  }
}

}  // namespace einmal
