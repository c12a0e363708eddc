#include "einmal/postgres/wire.hpp"

#include <libpq-fe.h>

#include <utility>

namespace einmal::postgres {

namespace {

/// 2000-01-01, PostgreSQL's epoch, in microseconds since 1970.
constexpr Duration epoch = std::chrono::seconds(946'684'800);

template <class Integer>
void append(Bytes& out, Integer value) {
  const auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t i = sizeof(Integer); i-- > 0;)
    out.push_back(static_cast<char>((bits >> (8 * i)) & 0xff));
}

template <class Integer>
Value as_value(Integer value) {
  Bytes out;
  append(out, value);
  return out;
}

std::int64_t read_integer(BytesView bytes) {
  if (bytes.empty() || bytes.size() > 8) return 0;
  std::uint64_t value = static_cast<signed char>(bytes.front()) < 0 ? ~std::uint64_t{0} : 0;
  for (const char c : bytes) value = (value << 8) | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(value);
}

Type array_of(Type element) {
  switch (element) {
    case Type::boolean:
      return Type::boolean_array;
    case Type::bytes:
      return Type::bytes_array;
    case Type::int2:
      return Type::int2_array;
    case Type::int4:
      return Type::int4_array;
    case Type::int8:
      return Type::int8_array;
    case Type::interval:
      return Type::interval_array;
    case Type::uuid:
      return Type::uuid_array;
    default:
      return Type::text_array;
  }
}

}  // namespace

Value wire_bool(bool value) { return Bytes(1, value ? '\1' : '\0'); }
Value wire_int2(std::int16_t value) { return as_value(value); }
Value wire_int4(std::int32_t value) { return as_value(value); }
Value wire_int8(std::int64_t value) { return as_value(value); }

Value wire_interval(Duration value) {
  Bytes out;
  append(out, std::int64_t{value.count()});
  append(out, std::int64_t{0});  // days, months
  return out;
}

void Array::add(BytesView value) {
  append(elements_, static_cast<std::int32_t>(value.size()));
  elements_.append(value);
  ++count_;
}

void Array::add_null() {
  append(elements_, std::int32_t{-1});
  has_null_ = true;
  ++count_;
}

void Array::add(const Value& value) { value ? add(BytesView(*value)) : add_null(); }

Type Array::type() const { return array_of(element_); }

Bytes Array::bytes() const {
  Bytes out;
  out.reserve(20 + elements_.size());
  append(out, std::int32_t{count_ > 0 ? 1 : 0});
  append(out, std::int32_t{has_null_ ? 1 : 0});
  append(out, static_cast<std::int32_t>(element_));
  if (count_ == 0) return out;
  append(out, count_);
  append(out, std::int32_t{1});  // lower bound
  return out + elements_;
}

Parameters& Parameters::add(Type type, Value value) {
  types_.push_back(static_cast<unsigned>(type));
  values_.push_back(std::move(value));
  return *this;
}

bool Row::is_null(int column) const { return PQgetisnull(result_, row_, column) != 0; }

BytesView Row::bytes(int column) const {
  return {PQgetvalue(result_, row_, column),
          static_cast<std::size_t>(PQgetlength(result_, row_, column))};
}

bool Row::boolean(int column) const { return bytes(column) == BytesView("\1", 1); }
std::int64_t Row::integer(int column) const { return read_integer(bytes(column)); }

WallTime Row::time(int column) const { return WallTime(epoch + Duration(integer(column))); }

Duration Row::interval(int column) const {
  const BytesView value = bytes(column);
  if (value.size() != 16) return {};
  const auto days = read_integer(value.substr(8, 4)) + 30 * read_integer(value.substr(12, 4));
  return Duration(read_integer(value.substr(0, 8))) + std::chrono::hours(24 * days);
}

std::optional<std::int64_t> Row::optional_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional(integer(column));
}
std::optional<WallTime> Row::optional_time(int column) const {
  return is_null(column) ? std::nullopt : std::optional(time(column));
}
std::optional<Duration> Row::optional_interval(int column) const {
  return is_null(column) ? std::nullopt : std::optional(interval(column));
}
std::optional<Bytes> Row::optional_bytes(int column) const {
  return is_null(column) ? std::nullopt : std::optional(Bytes(bytes(column)));
}

}  // namespace einmal::postgres
