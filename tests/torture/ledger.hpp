#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace einmal::test {

/// What the upstream of a torture run did, by key. Thread-safe.
class Ledger {
 public:
  /// A new effect of this key; its body, which no other effect has.
  std::string book(const std::string& key) {
    const std::lock_guard lock(mutex_);
    ++effects_[key];
    return "effect " + std::to_string(++all_) + " of " + key;
  }
  bool is_first_release(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return ++released_[key] == 1;
  }
  std::size_t effects(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = effects_.find(key);
    return at == effects_.end() ? 0 : at->second;
  }
  std::size_t keys_with_several() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        effects_.begin(), effects_.end(), [](const auto& each) { return each.second > 1; }));
  }
  std::size_t all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t> effects_, released_;
  std::size_t all_ = 0;
};

}  // namespace einmal::test
