// A multipart body that is understood means the same under every boundary that does not occur in
// it. Input: the boundary, a line feed, the body.

#include <string>

#include "einmal/fingerprint/canonical_writer.hpp"
#include "einmal/fingerprint/multipart.hpp"
#include "expect.hpp"

namespace {

std::string rebuilt(const std::vector<einmal::MultipartPart>& parts, const std::string& boundary) {
  std::string body;
  for (const auto& part : parts) {
    body += "--" + boundary + "\r\n";
    for (const auto& [name, value] : part.headers) {
      body.append(name).append(": ").append(value).append("\r\n");
    }
    body.append("\r\n").append(part.content).append("\r\n");
  }
  return body + "--" + boundary + "--";
}

std::string form_of(const std::vector<einmal::MultipartPart>& parts) {
  einmal::BytesWriter out;
  write_multipart(out, parts);
  return out.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = input_text(data, size);
  const auto end = input.find('\n');
  if (end == std::string_view::npos) return 0;
  const auto boundary = input.substr(0, end), body = input.substr(end + 1);
  const auto parts = einmal::parse_multipart(body, boundary);
  if (!parts) return 0;

  std::string other = "other";
  while (body.find(other) != std::string_view::npos) other += 'x';
  if (other.size() > 70) return 0;
  const std::string again = rebuilt(*parts, other);
  const auto other_parts = einmal::parse_multipart(again, other);
  EINMAL_EXPECT(other_parts.has_value());
  EINMAL_EXPECT(form_of(*other_parts) == form_of(*parts));
  return 0;
}
