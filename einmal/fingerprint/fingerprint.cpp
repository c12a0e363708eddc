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

void write_headers(CanonicalWriter& out, const Rules& rules, const http::HeaderLines& headers) {
  for (const auto& name : rules.headers) {
    out.count(headers.count(name));
    for (const auto& line : headers) {
      if (http::iequals(line.name, name)) out.bytes(line.value);
    }
  }
}

/// The media type: absent, parsed, or as sent. Only one that could be parsed is returned.
std::optional<Parameterised> write_media_type(CanonicalWriter& out,
                                              const http::HeaderLines& headers) {
  constexpr std::string_view name = "content-type";
  const std::size_t lines = headers.count(name);
  if (lines == 0) {
    out.byte(0);
    return std::nullopt;
  }
  std::optional<Parameterised> type;
  if (lines == 1) type = parse_media_type(*headers.first(name));
  if (!type) {
    out.byte(2);
    out.count(lines);
    for (const auto& line : headers) {
      if (http::iequals(line.name, name)) out.bytes(line.value);
    }
    return std::nullopt;
  }
  out.byte(1);
  if (is_multipart(*type)) {
    Parameterised without_boundary = *type;
    without_boundary.remove("boundary");
    without_boundary.write(out);
  } else {
    type->write(out);
  }
  return type;
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
  write_headers(out, rules, input.headers);
  const auto type = write_media_type(out, input.headers);

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
