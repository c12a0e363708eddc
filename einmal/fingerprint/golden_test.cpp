#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "einmal/fingerprint/canonical_writer.hpp"
#include "einmal/fingerprint/requests_in_tests.hpp"
#include "einmal/fingerprint/vectors_in_tests.hpp"

namespace einmal {
namespace {

struct Golden {
  std::string name;
  FingerprintOptions options;
  SampleRequest request;
  std::string profile, digest;
};

std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out.push_back(text[i]);
    } else if (text[i + 1] == 'x') {
      out.append(*from_hex(text.substr(i + 2, 2)));
      i += 3;
    } else {
      out.push_back('\\');
      ++i;
    }
  }
  return out;
}

void read_line(Golden& golden, const std::string& word, const std::string& rest) {
  const auto split = [&](char at) {
    const auto mark = rest.find(at);
    return std::pair(rest.substr(0, mark), rest.substr(mark + 2));
  };
  if (word == "case") golden.name = rest;
  if (word == "semantic") golden.options.headers.push_back(rest);
  if (word == "ignore") golden.options.ignore.push_back(unescape(rest));
  if (word == "only") golden.options.only.push_back(unescape(rest));
  if (word == "default") golden.options.defaults.insert(split(':'));
  if (word == "nfc") golden.options.nfc = true;
  if (word == "host") golden.options.hosts.push_back(rest);
  if (word == "method") golden.request.method = rest;
  if (word == "operation") golden.request.operation = rest;
  if (word == "authority") golden.request.authority = rest;
  if (word == "target") golden.request.target = unescape(rest);
  if (word == "header") golden.request.headers.add(split(':').first, unescape(split(':').second));
  if (word == "body") golden.request.body = unescape(rest);
  if (word == "profile") golden.profile = rest;
  if (word == "digest") golden.digest = rest;  // or "unusable"
}

std::vector<Golden> read_golden() {
  std::istringstream in(
      read_file(std::filesystem::path(EINMAL_SOURCE_DIR) / "einmal/fingerprint/golden_v1.txt"));
  std::vector<Golden> all;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    if (word == "case") all.emplace_back();
    read_line(all.back(), word, blank == std::string::npos ? "" : line.substr(blank + 1));
  }
  return all;
}

TEST(GoldenFingerprints, OfVersion1NeverChange) {
  const auto all = read_golden();
  EXPECT_GE(all.size(), 30u);
  for (const auto& golden : all) {
    const auto profile = profile_of(golden.options);
    EXPECT_EQ(to_hex({reinterpret_cast<const char*>(profile.id().data()), 32}), golden.profile)
        << golden.name;
    const std::string print = print_of(golden.request, profile);
    EXPECT_EQ(print.substr(0, golden.digest.size()), golden.digest) << golden.name << ": " << print;
  }
}

TEST(GoldenFingerprints, TheExampleOfTheFormatPageIsTrue) {
  SampleRequest request = sent("Application/JSON", R"({"b":[1.0,null],"a":"\u0041"})");
  request.authority = "API.example:443";
  const auto profile = profile_of({});
  BytesWriter out;
  ASSERT_FALSE(write_canonical_form(out, profile, request.input()));
  const std::string page =
      read_file(std::filesystem::path(EINMAL_SOURCE_DIR) / "docs/formats/fingerprint.md");
  EXPECT_NE(page.find(to_hex(profile.definition())), std::string::npos)
      << to_hex(profile.definition());
  std::string form;  // The page breaks the hex into lines of 32 bytes.
  const std::string hex = to_hex(out.take());
  for (std::size_t i = 0; i < hex.size(); i += 64) form += hex.substr(i, 64) + "\n";
  EXPECT_NE(page.find(form), std::string::npos) << form;
  EXPECT_NE(page.find(print_of(request, profile)), std::string::npos) << print_of(request, profile);
}

}  // namespace
}  // namespace einmal
