#include <gtest/gtest.h>

#include "einmal/base/bytes.hpp"
#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"
#include "einmal/base/read_file.hpp"

namespace einmal {
namespace {

struct Tag {};

TEST(Bytes, SurviveTheWayThroughHexadecimal) {
  Bytes all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(from_hex(to_hex(all)), all);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
  EXPECT_EQ(from_hex("abc"), std::nullopt);
}

TEST(Bytes, LengthPrefixKeepsPartsApart) {
  Bytes a, b;
  append_length_prefixed(a, "ab");
  append_length_prefixed(a, "c");
  append_length_prefixed(b, "a");
  append_length_prefixed(b, "bc");
  EXPECT_NE(a, b);
  EXPECT_EQ(a.size(), 8u + 2 + 8 + 1);
}

TEST(Ids, ReadBackWhatTheyPrint) {
  SeededRandom random(7);
  const auto id = Id128<Tag>::draw(random);
  EXPECT_EQ(Id128<Tag>::from_text(id.text()), id);
  EXPECT_EQ(id.text()[14], '4');
  EXPECT_EQ(Id128<Tag>::from_text("not an id"), std::nullopt);
}

TEST(Ids, TheSystemNeverDrawsTheSameTwice) {
  SystemRandom random;
  EXPECT_NE(Id128<Tag>::draw(random), Id128<Tag>::draw(random));
}

TEST(SeededRandom, RepeatsFromItsSeed) {
  SeededRandom a(42), b(42), c(43);
  const auto first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
}

TEST(SystemClock, KnowsItsBootAndDoesNotGoBack) {
  const SystemClock clock;
  EXPECT_FALSE(clock.boot_id().is_nil());
  const auto before = clock.boot_now();
  EXPECT_LE(before, clock.boot_now());
}

TEST(ReadFile, GivesAllBytesOrSaysWhyNot) {
  const auto ours = read_file("/proc/self/exe");
  ASSERT_TRUE(ours);
  EXPECT_EQ(ours->substr(1, 3), "ELF");
  EXPECT_EQ(read_file("/dev/null").value_or("?"), "");
  for (const char* path : {"/", "/proc/nothing", "", "/proc/self/mem"}) {
    const auto failed = read_file(path);
    ASSERT_FALSE(failed) << path;
    EXPECT_EQ(failed.error().code, ErrorCode::invalid);
    EXPECT_NE(failed.error().message.find(std::string(path) + ": cannot be read ("),
              std::string::npos);
  }
}

TEST(Result, CarriesTheReasonOnwards) {
  const Result<int> failed =
      failure(ErrorCode::unavailable, "store: disk is full; free some space");
  const Result<std::string> passed = pass_on(failed);
  EXPECT_EQ(passed.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace einmal
