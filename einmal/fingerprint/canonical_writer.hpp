#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "einmal/base/bytes.hpp"
#include "einmal/core/record.hpp"

namespace einmal {

/// Where the canonical form is written: a buffer that is drained when full. All of the encoding's
/// primitives are here (docs/formats/fingerprint.md, "Primitives"):
///   count  an unsigned number, LEB128: seven bits a byte, lowest first, no longer than needed
///   signed a signed number as the count 2n for n >= 0 and -2n - 1 for n < 0
///   bytes  a count and that many bytes
class CanonicalWriter {
 public:
  CanonicalWriter(const CanonicalWriter&) = delete;
  CanonicalWriter& operator=(const CanonicalWriter&) = delete;

  void byte(std::uint8_t value) {
    make_room(1);
    buffer_[used_++] = static_cast<char>(value);
  }

  void count(std::uint64_t value) {
    make_room(10);
    while (value >= 0x80) {
      buffer_[used_++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    buffer_[used_++] = static_cast<char>(value);
  }

  void signed_number(std::int64_t value) {
    count((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }

  /// Bytes without a length: where one stands before, or where the length is fixed.
  [[gnu::always_inline]] void raw(BytesView value) {
    if (value.size() <= buffer_.size() - used_) {
      copy(buffer_.data() + used_, value.data(), value.size());
      used_ += value.size();
    } else {
      raw_beyond_buffer(value);
    }
  }

  void bytes(BytesView value) {
    if (value.size() < 0x80 && value.size() < buffer_.size() - used_) {
      buffer_[used_++] = static_cast<char>(value.size());
      copy(buffer_.data() + used_, value.data(), value.size());
      used_ += value.size();
    } else {
      count(value.size());
      raw(value);
    }
  }

 protected:
  CanonicalWriter() = default;
  ~CanonicalWriter() = default;
  void flush() {
    if (used_ != 0) drain({buffer_.data(), used_});
    used_ = 0;
  }

 private:
  virtual void drain(BytesView bytes) = 0;

  /// Most of what is written is short: copied by two overlapping moves instead of a call.
  [[gnu::always_inline]] static void copy(char* to, const char* from, std::size_t size) {
    if (size > 16) {
      std::memcpy(to, from, size);
    } else if (size >= 8) {
      copy_ends<std::uint64_t>(to, from, size);
    } else if (size >= 4) {
      copy_ends<std::uint32_t>(to, from, size);
    } else {
      for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
    }
  }
  template <class Word>
  static void copy_ends(char* to, const char* from, std::size_t size) {
    Word first, last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + size - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + size - sizeof last, &last, sizeof last);
  }

  void make_room(std::size_t size) {
    if (buffer_.size() - used_ < size) flush();
  }
  void raw_beyond_buffer(BytesView value) {
    flush();
    if (value.size() >= buffer_.size()) {
      drain(value);
    } else {
      raw(value);
    }
  }

  std::size_t used_ = 0;
  std::array<char, 4096> buffer_;
};

/// Keeps what is written: profile definitions, and tests that look at the bytes.
class BytesWriter final : public CanonicalWriter {
 public:
  Bytes take() {
    flush();
    return std::move(out_);
  }

 private:
  void drain(BytesView bytes) override { out_.append(bytes); }
  Bytes out_;
};

/// SHA-256 of what is written. Uses the calling thread's digest context: at most one at a time a
/// thread, created and finished there.
class HashWriter final : public CanonicalWriter {
 public:
  /// Throws std::bad_alloc if OpenSSL cannot set up the digest (see `sha256_available`).
  HashWriter();
  Digest finish();

 private:
  void drain(BytesView bytes) override;
  void* context_;
};

Digest sha256(BytesView bytes);

/// Whether OpenSSL provides SHA-256 (a configuration without a default provider does not).
bool sha256_available();

}  // namespace einmal
