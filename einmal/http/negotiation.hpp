#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/http/head.hpp"

/// What a client asks of an answer: Prefer (RFC 7240) and Accept-Encoding (RFC 9110 section
/// 12.5.3).

namespace einmal::http {

/// The preferences that einmal honours. Unknown and malformed ones are ignored, as RFC 7240 asks;
/// of a repeated one the first counts.
struct Preferences {
  std::optional<Duration> wait;  ///< `wait=N` seconds; at most a day.
  bool respond_async = false;
};
Preferences parse_prefer(const HeaderLines& head);

/// Which content codings a client accepts, and how gladly.
class AcceptEncoding {
 public:
  /// Of all Accept-Encoding lines together. Without any line only identity is accepted: RFC 9110
  /// would allow everything, but a client that says nothing is not known to decode anything.
  explicit AcceptEncoding(const HeaderLines& head);

  /// 0 (not acceptable) to 1000. `x-gzip` is gzip, `x-compress` is compress.
  int quality(std::string_view coding) const;
  bool accepts(std::string_view coding) const { return quality(coding) > 0; }
  /// Whether the client can take a body with this Content-Encoding value (a list of codings; empty:
  /// identity).
  bool accepts_all(std::string_view content_encoding) const;
  /// The candidate of highest quality, earlier ones first among equals; nothing if identity is
  /// preferred to each of them or none is acceptable.
  std::optional<std::string_view> best_of(const std::vector<std::string_view>& candidates) const;

 private:
  std::vector<std::pair<std::string, int>> codings_;
};

}  // namespace einmal::http
