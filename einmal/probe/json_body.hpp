#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace einmal::probe {

/// A JSON object as text, taken apart at its top level so that the probe can write it differently
/// without touching how its values are spelled.
class JsonBody {
 public:
  /// Nothing: not a JSON object.
  static std::optional<JsonBody> read(std::string_view text);

  std::string text() const;
  /// Members in reverse order.
  std::string reordered() const;
  /// With blanks, tabs and line ends wherever JSON allows them at the top level.
  std::string respaced() const;
  /// One more member, at the end. `value` is JSON text.
  std::string with(std::string_view name, std::string_view value) const;
  /// Another request: the first number one larger (or a digit more), else the first text longer.
  /// Nothing when there is neither.
  std::optional<std::string> changed() const;
  std::size_t size() const { return members_.size(); }

 private:
  struct Member {
    std::string name, value;  ///< As written, the name with its quotes.
  };
  std::vector<Member> members_;
};

/// The text that `{/pointer}` stands for in `path`, out of a JSON document. Nothing: the document
/// has no text or number there. A path without braces is itself.
std::optional<std::string> fill_in(std::string_view path, std::string_view document);

}  // namespace einmal::probe
