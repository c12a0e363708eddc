#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "einmal/base/clock.hpp"
#include "einmal/observe/log.hpp"

namespace einmal::detail {

/// One line of a log: time, level, event and pairs, in the order in which they are added.
class LogLine {
 public:
  LogLine(LogOptions::Format format, WallTime time, LogLevel level, std::string_view event);

  LogLine& add(std::string_view name, std::string_view value);
  LogLine& add(std::string_view name, std::uint64_t value);
  LogLine& add(std::string_view name, bool value);
  /// In seconds, with microseconds.
  LogLine& add(std::string_view name, Duration value);
  /// Nothing is written for an empty value.
  LogLine& add_if(std::string_view name, std::string_view value) {
    return value.empty() ? *this : add(name, value);
  }

  /// The line without its line break. Ends it.
  std::string finish();

 private:
  void name(std::string_view name);
  void quoted(std::string_view value);

  LogOptions::Format format_;
  std::string text_;
};

}  // namespace einmal::detail
