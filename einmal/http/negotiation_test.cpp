#include "einmal/http/negotiation.hpp"

#include <gtest/gtest.h>

#include "einmal/base/random.hpp"
#include "einmal/http/http_date.hpp"

namespace einmal::http {
namespace {

using namespace std::chrono_literals;

WallTime at(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

TEST(HttpDate, is_written_as_the_rfc_has_it_and_rounded_down) {
  EXPECT_EQ(imf_fixdate(at(784111777)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(imf_fixdate(at(784111777) + 999'999us), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(imf_fixdate(at(0)), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(imf_fixdate(at(0) - 1us), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(imf_fixdate(at(951827696)), "Tue, 29 Feb 2000 12:34:56 GMT");
}

TEST(HttpDate, reads_all_three_forms) {
  const auto now = at(1'764'547'200);  // 2025-12-01
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", now), at(784111777));
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", now), at(784111777));
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994", now), at(784111777));
  EXPECT_EQ(parse_http_date("Wed Nov 16 08:49:37 1994", now), at(784111777 + 10 * 86400));
  EXPECT_EQ(imf_fixdate(*parse_http_date("Monday, 01-Jan-75 00:00:00 GMT", now)),
            "Tue, 01 Jan 2075 00:00:00 GMT");
  EXPECT_EQ(imf_fixdate(*parse_http_date("Monday, 01-Jan-76 00:00:00 GMT", now)),
            "Thu, 01 Jan 1976 00:00:00 GMT");
}

TEST(HttpDate, refuses_everything_else) {
  for (const char* bad :
       {"", "now", ",", "Sun,", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMTx",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov"}) {
    EXPECT_EQ(parse_http_date(bad, at(0)), std::nullopt) << bad;
  }
}

TEST(HttpDate, reads_back_what_it_writes) {
  const auto seed = SystemRandom().below(UINT64_MAX);
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto time = at(static_cast<std::int64_t>(random.below(200'000'000'000)));
    ASSERT_EQ(parse_http_date(imf_fixdate(time), at(0)), time) << imf_fixdate(time);
  }
}

TEST(RetryAfter, takes_seconds_and_dates_and_tolerates_nonsense) {
  const auto now = at(784111777);
  EXPECT_EQ(parse_retry_after("120", now), 120s);
  EXPECT_EQ(parse_retry_after(" 0 ", now), 0s);
  EXPECT_EQ(parse_retry_after("99999999999999999999999", now), 24h);
  EXPECT_EQ(parse_retry_after("86401", now), 24h);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", now), 60s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1993 08:50:37 GMT", now), 0s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 2094 08:50:37 GMT", now), 24h);
  for (const char* nonsense : {"", " ", "-1", "1.5", "+1", "1s", "soon", "0x10", "1, 2"}) {
    EXPECT_EQ(parse_retry_after(nonsense, now), std::nullopt) << nonsense;
  }
}

Preferences prefer(std::initializer_list<HeaderLine> lines) {
  return parse_prefer(HeaderLines(lines));
}

TEST(Prefer, finds_what_einmal_honours) {
  EXPECT_EQ(prefer({}).wait, std::nullopt);
  EXPECT_EQ(prefer({{"Prefer", "wait=10"}}).wait, 10s);
  EXPECT_EQ(prefer({{"prefer", "respond-async, Wait = \"10\"; foo=bar"}}).wait, 10s);
  EXPECT_TRUE(prefer({{"Prefer", "respond-async;x=1"}}).respond_async);
  const auto both = prefer({{"Prefer", "respond-async"}, {"Prefer", "handling=lenient,wait=3"}});
  EXPECT_TRUE(both.respond_async);
  EXPECT_EQ(both.wait, 3s);
  EXPECT_EQ(prefer({{"Prefer", "wait=1"}, {"Prefer", "wait=2"}}).wait, 1s);
  EXPECT_EQ(prefer({{"Prefer", "foo=\"a, wait=9\""}}).wait, std::nullopt);
  EXPECT_EQ(prefer({{"Prefer", "wait=99999999999999999999"}}).wait, 24h);
  for (const char* ignored : {"wait", "wait=", "wait=-1", "wait=1s", "wait=1.5", "await=3", ",,"}) {
    EXPECT_EQ(prefer({{"Prefer", ignored}}).wait, std::nullopt) << ignored;
  }
}

AcceptEncoding accept(const char* value) {
  return AcceptEncoding(HeaderLines{{"Accept-Encoding", value}});
}

// C16: a client that excluded gzip never gets gzip; one that said nothing gets plain bytes.
TEST(AcceptEncoding, decides_what_a_repeat_may_get_C16) {
  const AcceptEncoding silent{HeaderLines{}};
  EXPECT_FALSE(silent.accepts("gzip"));
  EXPECT_TRUE(silent.accepts("identity"));
  EXPECT_TRUE(accept("gzip").accepts("gzip"));
  EXPECT_TRUE(accept("gzip").accepts("identity"));
  EXPECT_TRUE(accept("X-GZip").accepts("gzip"));
  EXPECT_FALSE(accept("identity").accepts("gzip"));
  EXPECT_FALSE(accept("br;q=1, gzip;q=0").accepts("gzip"));
  EXPECT_FALSE(accept("").accepts("gzip"));
  EXPECT_TRUE(accept("").accepts("identity"));
  EXPECT_TRUE(accept("*").accepts("gzip"));
  EXPECT_FALSE(accept("*;q=0").accepts("identity"));
  EXPECT_FALSE(accept("gzip, identity;q=0").accepts("identity"));
  EXPECT_TRUE(accept("*;q=0, identity").accepts("identity"));
  EXPECT_FALSE(accept("gzip; q = 0").accepts("gzip"));
  EXPECT_FALSE(accept("gzip;Q=0.000").accepts("gzip"));
  EXPECT_TRUE(accept("gzip;q=0.001").accepts("gzip"));
}

TEST(AcceptEncoding, counts_a_malformed_weight_as_a_refusal) {
  for (const char* bad : {"gzip;q=", "gzip;q=2", "gzip;q=1.5", "gzip;q=-1", "gzip;q=0.1234",
                          "gzip;q=x", "gzip;q=1x"}) {
    EXPECT_FALSE(accept(bad).accepts("gzip")) << bad;
  }
}

TEST(AcceptEncoding, accepts_a_list_of_codings_only_as_a_whole) {
  EXPECT_TRUE(accept("gzip, br").accepts_all("gzip, br"));
  EXPECT_FALSE(accept("gzip").accepts_all("gzip, br"));
  EXPECT_TRUE(accept("gzip").accepts_all(""));
  EXPECT_FALSE(accept("gzip, identity;q=0").accepts_all(""));
}

TEST(AcceptEncoding, prefers_the_heaviest_candidate) {
  EXPECT_EQ(accept("gzip;q=0.5, zstd").best_of({"gzip", "zstd"}), "zstd");
  EXPECT_EQ(accept("zstd, gzip").best_of({"gzip", "zstd"}), "gzip");
  EXPECT_EQ(accept("gzip;q=0.5, identity").best_of({"gzip"}), std::nullopt);
  EXPECT_EQ(accept("br").best_of({"gzip", "zstd"}), std::nullopt);
  EXPECT_EQ(AcceptEncoding(HeaderLines{}).best_of({"gzip"}), std::nullopt);
}

}  // namespace
}  // namespace einmal::http
