#include "einmal/observe/log_line.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace einmal::detail {

namespace {

/// RFC 3339, in UTC, with microseconds.
std::string timestamp(WallTime time) {
  const auto since = time.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const auto rest = (since - whole).count();
  const std::time_t seconds = whole.count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> out{};
  const std::size_t size = std::strftime(out.data(), out.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(out.data() + size, out.size() - size, ".%06dZ", static_cast<int>(rest));
  return out.data();
}

std::string_view word(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "unknown";
}

bool is_plain(std::string_view value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
  });
}

}  // namespace

LogLine::LogLine(LogOptions::Format format, WallTime time, LogLevel level, std::string_view event)
    : format_(format) {
  text_.reserve(256);
  if (format_ == LogOptions::Format::json) {
    text_ = '{';
    add("time", timestamp(time)).add("level", word(level)).add("event", event);
  } else {
    text_ += timestamp(time);
    text_ += ' ';
    text_ += word(level);
    text_ += ' ';
    text_ += event;
  }
}

void LogLine::name(std::string_view name) {
  if (format_ == LogOptions::Format::json) {
    if (text_.size() > 1) text_ += ',';
    text_ += '"';
    text_ += name;
    text_ += "\":";
  } else {
    text_ += ' ';
    text_ += name;
    text_ += '=';
  }
}

LogLine& LogLine::add(std::string_view name, std::string_view value) {
  this->name(name);
  if (format_ == LogOptions::Format::text && is_plain(value)) {
    text_ += value;
  } else {
    quoted(value);
  }
  return *this;
}

LogLine& LogLine::add(std::string_view name, std::uint64_t value) {
  this->name(name);
  text_ += std::to_string(value);
  return *this;
}

LogLine& LogLine::add(std::string_view name, bool value) {
  this->name(name);
  text_ += value ? "true" : "false";
  return *this;
}

LogLine& LogLine::add(std::string_view name, Duration value) {
  this->name(name);
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), "%.6f", std::chrono::duration<double>(value).count());
  text_ += out.data();
  return *this;
}

/// A JSON string; bytes that are not ASCII are written as escapes, so a line is one line and valid
/// UTF-8 whatever an operation is called.
void LogLine::quoted(std::string_view value) {
  text_ += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      std::array<char, 8> out{};
      std::snprintf(out.data(), out.size(), "\\u%04x", byte);
      text_ += out.data();
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

std::string LogLine::finish() {
  if (format_ == LogOptions::Format::json) text_ += '}';
  return std::move(text_);
}

}  // namespace einmal::detail
