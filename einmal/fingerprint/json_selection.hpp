#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "einmal/base/error.hpp"
#include "einmal/fingerprint/canonical_writer.hpp"
#include "einmal/fingerprint/json_document.hpp"

namespace einmal {

/// Which parts of a JSON body count: the options ignore, only and defaults as one tree of reference
/// tokens. Immutable once made.
class JsonSelection {
 public:
  /// A JSON value of its own, with the text that its document looks into.
  struct Value {
    std::string text;
    JsonDocument document;
  };

  struct Node {
    struct Child {
      std::string token;
      std::optional<std::size_t> index;  ///< Of an array element, if the token can be one.
      std::unique_ptr<Node> node;
    };
    std::vector<Child> children;  ///< Sorted by UTF-16 units of the token.
    bool ignored = false;
    std::unique_ptr<Value> default_value;

    const Node* find(std::string_view name) const;
    const Node* find(std::size_t index) const;
  };

  using Pointer = std::vector<std::string>;

  /// Errors: invalid, naming the option and the pointer.
  static Result<JsonSelection> make(const std::vector<std::string>& ignore,
                                    const std::vector<std::string>& only,
                                    const std::map<std::string, std::string>& defaults, bool nfc);

  /// Appends the three lists in one canonical form: pointers without those that others cover,
  /// sorted; defaults as canonical JSON text.
  void write_definition(CanonicalWriter& out) const;

  const Node& root() const { return *root_; }
  const std::vector<Pointer>& only() const { return only_; }

 private:
  JsonSelection() : root_(std::make_unique<Node>()) {}
  Node& at(const Pointer& pointer);

  std::unique_ptr<Node> root_;
  std::vector<Pointer> ignore_;
  std::vector<Pointer> only_;
  std::vector<std::pair<Pointer, std::string>> defaults_;
};

/// The canonical form of what counts in `document` (docs/formats/fingerprint.md, "JSON").
void write_json(CanonicalWriter& out, const JsonDocument& document, const JsonSelection& selection);

}  // namespace einmal
