#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace einmal::gateway {

/// Bytes that were read and not yet used. Holds no memory until the first read and after
/// `release`.
class Buffer {
 public:
  static constexpr std::size_t small = std::size_t{8} << 10;   ///< For heads and small bodies.
  static constexpr std::size_t large = std::size_t{64} << 10;  ///< For streaming.

  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  void consume(std::size_t bytes) { begin_ += bytes; }

  /// Room to read into, at least one byte, the buffer's size at least `size`. Moves what is held.
  struct Space {
    char* data;
    std::size_t size;
  };
  Space space(std::size_t size = small) {
    if (empty()) begin_ = end_ = 0;
    if (capacity_ < size || end_ == capacity_) make_room(size);
    return {data_.get() + end_, capacity_ - end_};
  }
  void filled(std::size_t bytes) { end_ += bytes; }

  /// Gives the memory back. Only while empty.
  void release() {
    data_.reset();
    capacity_ = begin_ = end_ = 0;
  }

 private:
  void make_room(std::size_t size) {
    const auto held = end_ - begin_;
    const auto wanted = std::max(size, begin_ == 0 && held == capacity_ ? capacity_ * 2 : held);
    if (wanted > capacity_) {
      std::unique_ptr<char[]> larger(new char[wanted]);
      if (held != 0) std::memcpy(larger.get(), data_.get() + begin_, held);
      data_ = std::move(larger);
      capacity_ = wanted;
    } else if (held != 0) {
      std::memmove(data_.get(), data_.get() + begin_, held);
    }
    begin_ = 0;
    end_ = held;
  }

  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

/// Memory that all bodies held at once may take. Counts only; one thread.
class Budget {
 public:
  explicit Budget(std::size_t limit) : limit_(limit) {}
  std::size_t used() const { return used_; }
  void set_limit(std::size_t limit) { limit_ = limit; }

  /// A part of the budget, given back at the end of its life.
  class Share {
   public:
    explicit Share(Budget& budget) : budget_(budget) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { budget_.used_ -= taken_; }

    /// Makes the share at least `bytes`; false and unchanged when the budget has no room.
    bool grow_to(std::size_t bytes) {
      if (bytes <= taken_) return true;
      if (budget_.used_ + (bytes - taken_) > budget_.limit_) return false;
      budget_.used_ += bytes - taken_;
      taken_ = bytes;
      return true;
    }

   private:
    Budget& budget_;
    std::size_t taken_ = 0;
  };

 private:
  std::size_t limit_;
  std::size_t used_ = 0;
};

}  // namespace einmal::gateway
