#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "einmal/base/error.hpp"

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

/// The shop's books, in one SQLite file: what was sold, and one row for each effect, which nothing
/// ever removes. Each call is one transaction that survives the end of the process. Thread-safe.
class Ledger {
 public:
  /// Opens or creates `path`. Errors: unavailable (cannot be opened or written).
  static Result<std::unique_ptr<Ledger>> open(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  struct Added {};
  struct Stale {};  ///< The fence has seen a higher token: nothing was done.
  using AddOutcome = std::variant<Added, Entry, Stale>;
  /// One effect, whatever the key; with a fence, its token is compared and remembered in the same
  /// transaction.
  Result<AddOutcome> add(const Entry& entry, const std::optional<Fence>& fence = {});
  /// One effect, unless an entry of that kind and key is there already: then that entry.
  Result<AddOutcome> add_once(const Entry& entry, const std::optional<Fence>& fence = {});
  /// Makes the entry what is given. An effect only if that changes something.
  enum class Put : std::uint8_t { created, replaced, unchanged, stale };
  Result<Put> put(const Entry& entry, const std::optional<Fence>& fence = {});

  Result<std::optional<Entry>> find(const std::string& kind, const std::string& id);
  Result<std::vector<Entry>> with_key(const std::string& kind, const std::string& key);
  /// Takes the entry away; its effects stay in the books. False: there was none.
  Result<bool> remove(const std::string& kind, const std::string& id);
  /// All of them, or those of the entries of that item that are still there.
  Result<Effects> effects(const std::string& item = {});

 private:
  class Impl;
  explicit Ledger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace einmal::shop
