#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/bytes.hpp"

namespace einmal {

/// Why a text has no canonical form.
struct JsonFault {
  /// It is not JSON by the grammar of RFC 8259. Otherwise it is, and has no single meaning.
  bool breaks_grammar = false;
  /// What and where, for a person; printable ASCII, no value from the text.
  std::string reason;
};

/// A parsed JSON text as a flat list of nodes in document order, with the members of every object
/// sorted by UTF-16 code units. Numbers keep their text. Keeps views into the text, which must
/// outlive it; can be used for one text after another, keeping its memory.
class JsonDocument {
 public:
  enum class Kind : std::uint8_t {
    null_value,
    true_value,
    false_value,
    number,
    string,
    array,
    object,
    name
  };

  /// Eight bytes a value, since a hostile body is all values. An object takes two nodes, its
  /// members stand behind them; a member is its name's node and, behind it, its value's.
  class Node {
   public:
    Kind kind() const { return static_cast<Kind>(head_ & 7); }
    /// Of a string, name or number the bytes of its text; the elements or members of a container.
    std::uint32_t size() const { return head_ >> 4; }

   private:
    friend class JsonDocument;
    friend class JsonHandler;
    Node(Kind kind, std::uint32_t size, std::uint32_t value, bool unescaped = false)
        : head_(static_cast<std::uint32_t>(kind) | (unescaped ? 8 : 0) | size << 4),
          value_(value) {}
    bool unescaped() const { return (head_ & 8) != 0; }

    std::uint32_t head_;
    std::uint32_t value_;  // where the text begins; of a container the index behind it
  };

  /// Nothing on success. With `nfc`, names and strings are normalised to form C first.
  std::optional<JsonFault> parse(BytesView text, bool nfc);

  /// Forgets the text; gives back what memory one unusually large text needed.
  void clear();

  static constexpr std::uint32_t root = 0;
  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  /// The index behind the value and all that is in it.
  std::uint32_t next(std::uint32_t index) const {
    const Node& node = nodes_[index];
    const bool container = node.kind() == Kind::array || node.kind() == Kind::object;
    return container ? node.value_ : index + 1;
  }

  /// The unescaped bytes of a string or name, or the text of a number.
  std::string_view text(const Node& node) const {
    return (node.unescaped() ? std::string_view(arena_) : text_).substr(node.value_, node.size());
  }
  std::string_view name(std::uint32_t name_node) const { return text(nodes_[name_node]); }

  /// The name nodes of the object at `index`, in sorted order; each is followed by its value.
  const std::uint32_t* sorted_begin(std::uint32_t index) const {
    return sorted_.data() + nodes_[index + 1].value_;
  }
  const std::uint32_t* sorted_end(std::uint32_t index) const {
    return sorted_begin(index) + nodes_[index].size();
  }

 private:
  friend class JsonHandler;

  /// What the sort looks at first: the name's first eight bytes, so mapped that they order as
  /// UTF-16.
  struct Member {
    std::uint64_t prefix;
    std::uint32_t name;
  };

  bool less(const Member& a, const Member& b) const;
  /// Sorts the `count` members last opened; the first of two with equal names, if any.
  std::optional<std::uint32_t> close_object(std::uint32_t object, std::size_t count);

  BytesView text_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> sorted_;
  std::vector<Member> members_;  // of the objects that are open
  std::string arena_;
};

/// Order of UTF-16 code units over well-formed UTF-8: negative, zero, positive.
int compare_utf16(std::string_view a, std::string_view b);

/// `bytes` (well-formed UTF-8) in normalisation form C.
std::string to_nfc(std::string_view bytes);

/// `bytes` for a message: printable ASCII, the rest as \xNN, cut behind about `limit` bytes.
std::string printable(std::string_view bytes, std::size_t limit);

/// A name for a message: quoted, printable, cut.
std::string quoted_for_reason(std::string_view name);

/// `name` as a reference token of a JSON pointer (RFC 6901): `~` and `/` escaped.
std::string pointer_token(std::string_view name);

}  // namespace einmal
