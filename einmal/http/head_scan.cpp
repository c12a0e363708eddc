#include "einmal/http/head_scan.hpp"

#include <algorithm>
#include <cstring>

#include "einmal/http/head.hpp"

namespace einmal::http {

bool HeadScan::begins_well(std::string_view bytes) const {
  if (begins_with_.empty()) return is_token(bytes.substr(0, 1));
  const auto size = std::min(bytes.size(), begins_with_.size());
  return bytes.substr(0, size) == begins_with_.substr(0, size);
}

HeadScan::Found HeadScan::advance(std::string_view bytes) {
  if (bytes.empty()) return Found::need_more;
  if (!start_line_seen_ && !begins_well(bytes)) return refuse("not HTTP/1.x");
  for (;;) {
    const auto* found = static_cast<const char*>(
        std::memchr(bytes.data() + scanned_, '\n', bytes.size() - scanned_));
    if (found == nullptr) {
      scanned_ = bytes.size();
      return Found::need_more;
    }
    const auto feed = static_cast<std::size_t>(found - bytes.data());
    if (feed == 0 || bytes[feed - 1] != '\r') return refuse("a line ends in LF without CR");
    scanned_ = feed + 1;
    const bool empty = feed - 1 == line_start_;
    if (!start_line_seen_) {
      if (empty) return refuse("an empty line instead of a start line");
      start_line_seen_ = true;
    } else if (empty) {
      line_start_ = scanned_;
      return Found::end;
    } else {
      const char first = bytes[line_start_];
      if (first == ' ' || first == '\t') return refuse("a folded header line (obs-fold)");
      if (++lines_ > max_lines_) return Found::too_many_lines;
    }
    line_start_ = scanned_;
  }
}

}  // namespace einmal::http
