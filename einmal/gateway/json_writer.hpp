#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "einmal/http/json_text.hpp"

namespace einmal::gateway {

/// Writes one JSON value piece by piece; the caller keeps the nesting right.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& member(std::string_view name) {
    separate();
    http::append_json_string(out_, name);
    out_ += ':';
    first_ = true;
    return *this;
  }
  JsonWriter& text(std::string_view value) {
    separate();
    http::append_json_string(out_, value);
    return *this;
  }
  JsonWriter& number(std::uint64_t value) { return plain(std::to_string(value)); }
  JsonWriter& boolean(bool value) { return plain(value ? "true" : "false"); }
  JsonWriter& null() { return plain("null"); }

  const std::string& out() const { return out_; }

 private:
  JsonWriter& open(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }
  JsonWriter& plain(std::string_view json) {
    separate();
    out_ += json;
    return *this;
  }
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }

  std::string out_;
  bool first_ = true;
};

}  // namespace einmal::gateway
