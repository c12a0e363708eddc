#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace einmal::http {

/// Finds the end of a head in bytes that come in pieces, and refuses what a field parser would read
/// leniently or could no longer see: bare LF, folded lines, too many lines, a first byte that no
/// such message begins with. Looks at each byte once.
class HeadScan {
 public:
  enum class Found : std::uint8_t { need_more, end, refused, too_many_lines };

  /// `begins_with`: bytes that every such message starts with; empty: a token character.
  HeadScan(std::string_view begins_with, std::size_t max_lines)
      : begins_with_(begins_with), max_lines_(max_lines) {}

  /// `bytes` is the head so far: what was given before, and more.
  Found advance(std::string_view bytes);

  std::size_t end() const { return line_start_; }  ///< After Found::end: size of the head.
  std::size_t lines() const { return lines_; }     ///< Field lines.
  std::string_view refusal() const { return refusal_; }

 private:
  Found refuse(std::string_view why) {
    refusal_ = why;
    return Found::refused;
  }
  bool begins_well(std::string_view bytes) const;

  std::string_view begins_with_;
  std::size_t max_lines_;
  std::size_t line_start_ = 0;
  std::size_t scanned_ = 0;
  std::size_t lines_ = 0;
  bool start_line_seen_ = false;
  std::string_view refusal_;
};

}  // namespace einmal::http
