#include "einmal/http/http_date.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "einmal/http/head.hpp"

namespace einmal::http {

namespace {

namespace chr = std::chrono;

constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> day_names = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
constexpr Duration longest_wait = chr::hours(24);

void append_digits(std::string& out, unsigned value, unsigned digits) {
  std::string text = std::to_string(value);
  out.append(digits > text.size() ? digits - text.size() : 0, '0').append(text);
}

/// Takes fixed pieces off the front of a text; once one does not fit, `ok` stays false.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : rest_(text) {}

  void literal(std::string_view expected) {
    if (!rest_.starts_with(expected)) return fail();
    rest_.remove_prefix(expected.size());
  }
  int number(std::size_t digits) {
    const auto part = rest_.substr(0, digits);
    if (part.size() != digits ||
        !std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      fail();
      return 0;
    }
    int value = 0;
    std::from_chars(part.data(), part.data() + part.size(), value);
    rest_.remove_prefix(digits);
    return value;
  }
  /// A day of the month as asctime writes it: two places, the first maybe blank.
  int padded_day() {
    if (!rest_.starts_with(' ')) return number(2);
    rest_.remove_prefix(1);
    return number(1);
  }
  unsigned month() {
    const auto* found = std::find(months.begin(), months.end(), rest_.substr(0, 3));
    if (found == months.end()) {
      fail();
      return 1;
    }
    rest_.remove_prefix(3);
    return static_cast<unsigned>(found - months.begin()) + 1;
  }
  chr::seconds time_of_day() {
    const int hour = number(2);
    literal(":");
    const int minute = number(2);
    literal(":");
    const int second = number(2);  // 60: a leap second
    if (hour > 23 || minute > 59 || second > 60) fail();
    return chr::hours(hour) + chr::minutes(minute) + chr::seconds(second);
  }
  bool done() const { return ok_ && rest_.empty(); }
  void fail() { ok_ = false; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<WallTime> at(const Pieces& pieces, int year, unsigned month, int day,
                           chr::seconds time) {
  const chr::year_month_day date{chr::year(year), chr::month(month),
                                 chr::day(static_cast<unsigned>(day))};
  if (!pieces.done() || !date.ok()) return std::nullopt;
  return WallTime(chr::sys_days(date) + time);
}

// Sun, 06 Nov 1994 08:49:37 GMT, after the comma
std::optional<WallTime> parse_fixdate(std::string_view text) {
  Pieces pieces(text);
  pieces.literal(" ");
  const int day = pieces.number(2);
  pieces.literal(" ");
  const auto month = pieces.month();
  pieces.literal(" ");
  const int year = pieces.number(4);
  pieces.literal(" ");
  const auto time = pieces.time_of_day();
  pieces.literal(" GMT");
  return at(pieces, year, month, day, time);
}

// Sunday, 06-Nov-94 08:49:37 GMT, after the comma
std::optional<WallTime> parse_rfc850(std::string_view text, WallTime now) {
  Pieces pieces(text);
  pieces.literal(" ");
  const int day = pieces.number(2);
  pieces.literal("-");
  const auto month = pieces.month();
  pieces.literal("-");
  const int short_year = pieces.number(2);
  pieces.literal(" ");
  const auto time = pieces.time_of_day();
  pieces.literal(" GMT");
  const chr::year_month_day today{chr::floor<chr::days>(now)};
  const int this_year = static_cast<int>(today.year());
  int year = this_year / 100 * 100 + short_year;
  if (year > this_year + 50) year -= 100;
  return at(pieces, year, month, day, time);
}

// Sun Nov  6 08:49:37 1994, after the name of the day
std::optional<WallTime> parse_asctime(std::string_view text) {
  Pieces pieces(text);
  pieces.literal(" ");
  const auto month = pieces.month();
  pieces.literal(" ");
  const int day = pieces.padded_day();
  pieces.literal(" ");
  const auto time = pieces.time_of_day();
  pieces.literal(" ");
  const int year = pieces.number(4);
  return at(pieces, year, month, day, time);
}

}  // namespace

std::string imf_fixdate(WallTime time) {
  const auto day = chr::floor<chr::days>(time);
  const chr::year_month_day date(day);
  const auto second = chr::floor<chr::seconds>(time - day).count();
  std::string out;
  out.reserve(29);
  out.append(day_names[chr::weekday(day).c_encoding()]).append(", ");
  append_digits(out, static_cast<unsigned>(date.day()), 2);
  out.append(" ").append(months[static_cast<unsigned>(date.month()) - 1]).append(" ");
  append_digits(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  out.append(" ");
  append_digits(out, static_cast<unsigned>(second / 3600), 2);
  out.append(":");
  append_digits(out, static_cast<unsigned>(second / 60 % 60), 2);
  out.append(":");
  append_digits(out, static_cast<unsigned>(second % 60), 2);
  return out.append(" GMT");
}

std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) {
  text = trim(text);
  const auto comma = text.find(',');
  if (comma == 3) return parse_fixdate(text.substr(4));
  if (comma != std::string_view::npos) return parse_rfc850(text.substr(comma + 1), now);
  if (text.size() < 3) return std::nullopt;
  return parse_asctime(text.substr(3));
}

std::optional<Duration> parse_retry_after(std::string_view value, WallTime now) {
  value = trim(value);
  if (value.empty()) return std::nullopt;
  if (std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    std::uint64_t count = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), count);
    if (read.ec != std::errc() || count > 86'400) return longest_wait;
    return chr::seconds(count);
  }
  const auto date = parse_http_date(value, now);
  if (!date) return std::nullopt;
  return std::clamp<Duration>(*date - now, Duration::zero(), longest_wait);
}

}  // namespace einmal::http
