#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shop/connection.hpp"

namespace einmal::shop {

/// What the shop sells or takes money for. Amounts are in the currency's smallest unit.
struct Entry {
  std::string id;
  std::string kind;  ///< "order" or "payment"
  std::string item;  ///< Of an order; for a payment, the order it pays.
  std::int64_t amount = 0;
  std::string currency;
  std::string key;  ///< The Idempotency-Key that came with it, or empty. A note, not a constraint.
  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Effects {
  std::uint64_t count = 0;
  std::map<std::string, std::uint64_t> by_key;  ///< Those that came with a key.
};

/// Which attempt at a thing a request belongs to. Where one with a higher token was seen before, an
/// older one is stale: its sender was replaced while it was on its way.
struct Fence {
  std::string of;  ///< The thing.
  std::int64_t token = 0;
};

/// The shop's books through one connection: what was sold, and one row for each effect, which
/// nothing ever removes. What changes them wants a transaction around it. Each call may throw
/// BooksFailed.
class Books {
 public:
  explicit Books(Connection& connection) : connection_(connection) {}

  /// One effect, whatever the key. False: the fence has seen a higher token, nothing was done.
  bool add(const Entry& entry, const std::optional<Fence>& fence);
  /// Makes the entry what is given. An effect only if that changes something.
  enum class Put : std::uint8_t { created, replaced, unchanged, stale };
  Put put(const Entry& entry, const std::optional<Fence>& fence);
  /// Takes the entry away; its effects stay in the books. False: there was none.
  bool remove(const std::string& kind, const std::string& id);

  std::optional<Entry> find(const std::string& kind, const std::string& id);
  std::vector<Entry> with_key(const std::string& kind, const std::string& key);
  /// All of them, or those of the entries of that item that are still there.
  Effects effects(const std::string& item = {});

 private:
  bool pass(const std::optional<Fence>& fence);
  void note_effect(const Entry& entry);

  Connection& connection_;
};

}  // namespace einmal::shop
