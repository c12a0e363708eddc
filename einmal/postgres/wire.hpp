#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/bytes.hpp"
#include "einmal/base/clock.hpp"

struct pg_result;

/// PostgreSQL's binary formats of parameters and results, as its send and receive functions have
/// them: numbers most significant byte first, times in microseconds since 2000.
namespace einmal::postgres {

enum class Type : unsigned {
  boolean = 16,
  bytes = 17,
  int8 = 20,
  int2 = 21,
  int4 = 23,
  text = 25,
  interval = 1186,
  uuid = 2950,
  boolean_array = 1000,
  bytes_array = 1001,
  int2_array = 1005,
  int4_array = 1007,
  text_array = 1009,
  int8_array = 1016,
  interval_array = 1187,
  uuid_array = 2951,
};

/// One value in its binary form; nothing is NULL.
using Value = std::optional<Bytes>;

Value wire_bool(bool value);
Value wire_int2(std::int16_t value);
Value wire_int4(std::int32_t value);
Value wire_int8(std::int64_t value);
Value wire_interval(Duration value);
inline Value wire_bytes(BytesView value) { return Bytes(value); }

/// An array of one dimension that grows element by element.
class Array {
 public:
  explicit Array(Type element) : element_(element) {}
  void add(const Value& value);
  void add(BytesView value);
  void add_null();
  /// Its binary form.
  Bytes bytes() const;
  Type type() const;

 private:
  Type element_;
  std::int32_t count_ = 0;
  bool has_null_ = false;
  Bytes elements_;
};

/// The parameters of one statement.
class Parameters {
 public:
  Parameters& add(Type type, Value value);
  Parameters& add(const Array& array) { return add(array.type(), array.bytes()); }
  Parameters& text(std::string_view value) { return add(Type::text, Bytes(value)); }
  Parameters& bytes(BytesView value) { return add(Type::bytes, Bytes(value)); }
  Parameters& uuid(BytesView value) { return add(Type::uuid, Bytes(value)); }
  Parameters& int8(std::int64_t value) { return add(Type::int8, wire_int8(value)); }
  Parameters& int4(std::int32_t value) { return add(Type::int4, wire_int4(value)); }
  Parameters& int2(std::int16_t value) { return add(Type::int2, wire_int2(value)); }
  Parameters& boolean(bool value) { return add(Type::boolean, wire_bool(value)); }
  Parameters& interval(Duration value) { return add(Type::interval, wire_interval(value)); }
  Parameters& null(Type type) { return add(type, std::nullopt); }

  int count() const { return static_cast<int>(values_.size()); }
  const std::vector<unsigned>& types() const { return types_; }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::vector<unsigned> types_;
  std::vector<Value> values_;
};

/// One row of a result in binary format. The caller knows the columns' types; a value of another
/// length than its type reads as zero.
class Row {
 public:
  Row(const pg_result* result, int row) : result_(result), row_(row) {}
  bool is_null(int column) const;
  BytesView bytes(int column) const;
  bool boolean(int column) const;
  std::int64_t integer(int column) const;  ///< int2, int4 or int8, by its length.
  WallTime time(int column) const;
  Duration interval(int column) const;  ///< A day counts 24 h, a month 30 days.

  std::optional<std::int64_t> optional_integer(int column) const;
  std::optional<WallTime> optional_time(int column) const;
  std::optional<Duration> optional_interval(int column) const;
  std::optional<Bytes> optional_bytes(int column) const;

 private:
  const pg_result* result_;
  int row_;
};

}  // namespace einmal::postgres
