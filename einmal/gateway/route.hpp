#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/error.hpp"

namespace einmal {

/// A path template such as `/orders/{id}/refunds`: literal segments and `{name}` for one segment of
/// any non-empty text. Compared with canonical paths (fingerprint/target.hpp).
class PathTemplate {
 public:
  /// Errors: invalid, saying what is wrong with `text`: not beginning with a slash, not in
  /// canonical form, a brace that is not around a whole segment, a name twice.
  static Result<PathTemplate> parse(std::string_view text);

  bool matches(std::string_view canonical_path) const;
  /// Whether some path matches both.
  bool overlaps(const PathTemplate& other) const;
  const std::string& text() const { return text_; }

 private:
  struct Segment {
    std::string literal;  ///< Empty: a parameter.
  };
  std::string text_;
  std::vector<Segment> segments_;
};

}  // namespace einmal
