// The canonical query against a plain list of decoded pairs.

#include <algorithm>
#include <string>
#include <vector>

#include "einmal/fingerprint/target.hpp"
#include "expect.hpp"

namespace {

struct Pair {
  std::string name, value;
  bool has_value = false;
  friend bool operator==(const Pair&, const Pair&) = default;
};

int digit(char c) {
  const std::string_view digits = "0123456789abcdef";
  const auto at = digits.find(static_cast<char>(c >= 'A' && c <= 'F' ? c + 32 : c));
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

std::vector<Pair> pairs_of(std::string_view text) {
  std::vector<Pair> pairs;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('&', begin), text.size());
    const auto piece = text.substr(begin, end - begin);
    begin = end + 1;
    if (piece.empty()) continue;
    const auto equals = piece.find('=');
    Pair pair{decode(piece.substr(0, equals)), {}, equals != std::string_view::npos};
    if (pair.has_value) pair.value = decode(piece.substr(equals + 1));
    pairs.push_back(std::move(pair));
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.name < b.name; });
  return pairs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using einmal::canonical_query;
  const std::string_view text = input_text(data, size);
  const std::string canonical = canonical_query(text);
  EINMAL_EXPECT(canonical_query(canonical) == canonical);
  EINMAL_EXPECT(pairs_of(canonical) == pairs_of(text));

  // Cut in two: equal texts exactly when equal pairs.
  const auto half = text.find('\n');
  if (half == std::string_view::npos) return 0;
  const auto a = text.substr(0, half), b = text.substr(half + 1);
  EINMAL_EXPECT((canonical_query(a) == canonical_query(b)) == (pairs_of(a) == pairs_of(b)));
  return 0;
}
