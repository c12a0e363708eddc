#include "einmal/gateway/route.hpp"

#include <algorithm>
#include <set>

#include "einmal/fingerprint/target.hpp"

namespace einmal {

namespace {

tl::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return failure(ErrorCode::invalid,
                 "path template \"" + std::string(text) + "\": " + std::string(why));
}

/// The next segment of a path whose leading slash was taken off.
std::string_view next_segment(std::string_view& path) {
  const auto slash = std::min(path.find('/'), path.size());
  const auto segment = path.substr(0, slash);
  path.remove_prefix(std::min(slash + 1, path.size()));
  return segment;
}

}  // namespace

Result<PathTemplate> PathTemplate::parse(std::string_view text) {
  if (text.empty() || text.front() != '/') return bad(text, "must begin with a slash");
  PathTemplate made;
  made.text_ = text;
  std::set<std::string_view> names;
  std::string plain;
  for (auto rest = text.substr(1); !rest.empty();) {
    const auto segment = next_segment(rest);
    if (segment.find_first_of("{}") == std::string_view::npos) {
      made.segments_.push_back({std::string(segment)});
      plain.append("/").append(segment);
      continue;
    }
    const auto name = segment.substr(1, std::max<std::size_t>(segment.size(), 2) - 2);
    if (segment.front() != '{' || segment.back() != '}' || name.empty() ||
        name.find_first_of("{}") != std::string_view::npos)
      return bad(text, "a parameter is a whole segment: {name}");
    if (!names.insert(name).second) return bad(text, "a parameter name stands twice");
    made.segments_.push_back({});
    plain.append("/p");
  }
  if (plain.empty()) plain = "/";
  const auto literal_end = text.size() > 1 && text.back() == '/';
  if (literal_end || canonical_path(plain) != plain) {
    return bad(text,
               "not in canonical form (no trailing or repeated slash, no dot segment, no "
               "query, escapes only where needed); write it as \"" +
                   canonical_path(plain) + "\"");
  }
  return made;
}

bool PathTemplate::matches(std::string_view path) const {
  if (path.empty() || path.front() != '/') return false;
  if (path.size() > 1 && path.back() == '/') return false;
  path.remove_prefix(1);
  for (const auto& expected : segments_) {
    if (path.empty()) return false;
    const auto segment = next_segment(path);
    if (expected.literal.empty() ? segment.empty() : segment != expected.literal) return false;
  }
  return path.empty();
}

bool PathTemplate::overlaps(const PathTemplate& other) const {
  return segments_.size() == other.segments_.size() &&
         std::equal(segments_.begin(), segments_.end(), other.segments_.begin(),
                    [](const Segment& a, const Segment& b) {
                      return a.literal.empty() || b.literal.empty() || a.literal == b.literal;
                    });
}

}  // namespace einmal
