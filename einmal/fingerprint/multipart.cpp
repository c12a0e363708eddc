#include "einmal/fingerprint/multipart.hpp"

#include <algorithm>
#include <cstring>

#include "einmal/fingerprint/media_type.hpp"
#include "einmal/http/head.hpp"

namespace einmal {

namespace {

struct Delimiter {
  std::size_t begin;  ///< Of the CRLF before it.
  std::size_t end;    ///< Behind its line.
  bool last;
};

/// The rest of a delimiter line behind the boundary, if that is what `at` is.
std::optional<Delimiter> delimiter_line(BytesView body, std::size_t begin, std::size_t at) {
  const bool last = body.substr(at, 2) == "--";
  if (last) at += 2;
  while (at < body.size() && (body[at] == ' ' || body[at] == '\t')) ++at;
  if (body.substr(at, 2) == "\r\n") return Delimiter{begin, at + 2, last};
  if (last && at == body.size()) return Delimiter{begin, at, last};
  return std::nullopt;
}

std::optional<Delimiter> find_delimiter(BytesView body, std::size_t from,
                                        const std::string& line_start) {
  while (from <= body.size()) {
    // Linear whatever the content, unlike std::string_view::find on a file full of CR.
    const void* const hit =
        memmem(body.data() + from, body.size() - from, line_start.data(), line_start.size());
    if (hit == nullptr) return std::nullopt;
    const auto begin = static_cast<std::size_t>(static_cast<const char*>(hit) - body.data());
    if (const auto found = delimiter_line(body, begin, begin + line_start.size())) return found;
    from = begin + 2;
  }
  return std::nullopt;
}

std::optional<MultipartPart> parse_part(BytesView bytes) {
  MultipartPart part;
  for (;;) {
    const auto end = bytes.find("\r\n");
    if (end == BytesView::npos) return std::nullopt;
    const auto line = bytes.substr(0, end);
    bytes.remove_prefix(end + 2);
    if (line.empty()) break;
    const auto colon = line.find(':');
    if (colon == BytesView::npos || !http::is_token(line.substr(0, colon))) return std::nullopt;
    part.headers.emplace_back(line.substr(0, colon), http::trim(line.substr(colon + 1)));
  }
  part.content = bytes;
  return part;
}

void write_field(CanonicalWriter& out, const std::string& name, std::string_view value) {
  out.bytes(name);
  std::optional<Parameterised> parsed;
  if (name == "content-disposition") parsed = parse_disposition(value);
  if (name == "content-type") parsed = parse_media_type(value);
  out.byte(parsed ? 1 : 0);
  if (parsed) {
    parsed->write(out);
  } else {
    out.bytes(value);
  }
}

}  // namespace

std::optional<std::vector<MultipartPart>> parse_multipart(BytesView body,
                                                          std::string_view boundary) {
  if (boundary.empty() || boundary.size() > 70) return std::nullopt;
  const std::string line_start = "\r\n--" + std::string(boundary);
  std::optional<Delimiter> delimiter;
  if (body.substr(0, line_start.size() - 2) == line_start.substr(2)) {
    delimiter = delimiter_line(body, 0, line_start.size() - 2);
  }
  if (!delimiter) delimiter = find_delimiter(body, 0, line_start);
  std::vector<MultipartPart> parts;
  while (delimiter && !delimiter->last) {
    const std::size_t begin = delimiter->end;
    delimiter = find_delimiter(body, begin, line_start);
    if (!delimiter) return std::nullopt;
    auto part = parse_part(body.substr(begin, delimiter->begin - begin));
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
  }
  if (!delimiter) return std::nullopt;
  return parts;
}

void write_multipart(CanonicalWriter& out, const std::vector<MultipartPart>& parts) {
  out.count(parts.size());
  for (const auto& part : parts) {
    std::vector<std::pair<std::string, std::string_view>> fields;
    for (const auto& line : part.headers) {
      std::string name = lower_case(line.first);
      if (name != "content-length") fields.emplace_back(std::move(name), line.second);
    }
    std::stable_sort(fields.begin(), fields.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    out.count(fields.size());
    for (const auto& field : fields) write_field(out, field.first, field.second);
    out.bytes(part.content);
  }
}

}  // namespace einmal
