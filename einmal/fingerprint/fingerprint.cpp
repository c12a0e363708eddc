#include "einmal/fingerprint/fingerprint.hpp"

#include <optional>
#include <string>
#include <utility>

#include "einmal/fingerprint/canonical_form.hpp"
#include "einmal/fingerprint/content_coding.hpp"
#include "einmal/fingerprint/json_document.hpp"
#include "einmal/fingerprint/media_type.hpp"
#include "einmal/fingerprint/multipart.hpp"
#include "einmal/fingerprint/profile_rules.hpp"
#include "einmal/fingerprint/target.hpp"

namespace einmal {

namespace {

using Rules = FingerprintProfile::Rules;

/// What the canonical body is; stands before it.
enum class BodyKind : std::uint8_t {
  bytes = 'B',
  json = 'J',
  broken_json = 'X',
  form = 'F',
  multipart = 'M',
  broken_multipart = 'Y',
};

/// Calls `use` with the value of every line of that name (lower case).
template <class Use>
void for_each_line(const http::HeaderLines& headers, std::string_view name, const Use& use) {
  for (const auto& line : headers) {
    if (line.name.size() == name.size() && http::iequals(line.name, name)) use(line.value);
  }
}

/// The number of lines and their values: absent, empty and repeated differ.
void write_lines(CanonicalWriter& out, const http::HeaderLines& headers, std::string_view name) {
  std::size_t lines = 0;
  for_each_line(headers, name, [&](std::string_view) { ++lines; });
  out.count(lines);
  if (lines != 0) for_each_line(headers, name, [&](std::string_view value) { out.bytes(value); });
}

/// The media type of a request whose one Content-Type line can be parsed.
std::optional<Parameterised> media_type(const http::HeaderLines& headers) {
  std::string_view value;
  std::size_t lines = 0;
  for_each_line(headers, "content-type", [&](std::string_view line) {
    value = line;
    ++lines;
  });
  return lines == 1 ? parse_media_type(value) : std::nullopt;
}

void write_media_type(CanonicalWriter& out, const http::HeaderLines& headers,
                      const std::optional<Parameterised>& type) {
  if (!type) {
    out.byte(0);
    write_lines(out, headers, "content-type");
  } else if (is_multipart(*type)) {
    out.byte(1);
    Parameterised without_boundary = *type;
    without_boundary.remove("boundary");
    without_boundary.write(out);
  } else {
    out.byte(1);
    type->write(out);
  }
}

void write_as(CanonicalWriter& out, BodyKind kind, BytesView bytes) {
  out.byte(static_cast<std::uint8_t>(kind));
  out.bytes(bytes);
}

std::optional<Unusable> write_json_body(CanonicalWriter& out, const Rules& rules, BytesView body) {
  static thread_local JsonDocument document;
  const auto fault = document.parse(body, rules.nfc);
  if (!fault) {
    out.byte(static_cast<std::uint8_t>(BodyKind::json));
    write_json(out, document, rules.selection);
  } else if (fault->breaks_grammar) {
    write_as(out, BodyKind::broken_json, body);
  }
  document.clear();
  if (fault && !fault->breaks_grammar) return Unusable{"JSON body: " + fault->reason};
  return std::nullopt;
}

std::optional<Unusable> write_body(CanonicalWriter& out, const Rules& rules,
                                   const std::optional<Parameterised>& type, BytesView body) {
  if (type && is_json(*type)) return write_json_body(out, rules, body);
  if (type && is_form(*type)) {
    write_as(out, BodyKind::form, canonical_query(body));
  } else if (type && is_multipart(*type)) {
    const std::string* boundary = type->find("boundary");
    const auto parts = parse_multipart(body, boundary == nullptr ? std::string_view() : *boundary);
    if (parts) {
      out.byte(static_cast<std::uint8_t>(BodyKind::multipart));
      write_multipart(out, *parts);
    } else {
      write_as(out, BodyKind::broken_multipart, body);
    }
  } else {
    write_as(out, BodyKind::bytes, body);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Unusable> write_canonical_form(CanonicalWriter& out,
                                             const FingerprintProfile& profile,
                                             const FingerprintInput& input) {
  const Rules& rules = profile.rules();
  out.bytes(fingerprint_magic);
  out.count(fingerprint_version);
  out.raw({reinterpret_cast<const char*>(rules.id.data()), rules.id.size()});
  out.bytes(input.method);
  out.bytes(input.operation);
  out.bytes(rules.authority(input.authority));
  out.bytes(canonical_path(input.target));
  out.bytes(canonical_query(split_target(input.target).query));
  for (const auto& name : rules.headers) write_lines(out, input.headers, name);
  const auto type = media_type(input.headers);
  write_media_type(out, input.headers, type);

  const auto codings = content_codings(input.headers);
  if (codings.empty()) {
    out.count(0);
    return write_body(out, rules, type, input.body);
  }
  Bytes decoded;
  switch (decode_body(codings, input.body, rules.max_decoded_body, decoded)) {
    case Decoding::decoded:
      out.count(0);
      return write_body(out, rules, type, decoded);
    case Decoding::as_sent:
      out.count(codings.size());
      for (const auto& coding : codings) out.bytes(coding);
      write_as(out, BodyKind::bytes, input.body);
      return std::nullopt;
    case Decoding::too_large:
      break;
  }
  return Unusable{"Content-Encoding: the body decodes to more than " +
                  std::to_string(rules.max_decoded_body) + " bytes"};
}

std::variant<Digest, Unusable> fingerprint(const FingerprintProfile& profile,
                                           const FingerprintInput& input) {
  HashWriter out;
  if (auto unusable = write_canonical_form(out, profile, input)) return std::move(*unusable);
  return out.finish();
}

}  // namespace einmal
