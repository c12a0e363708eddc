#include "einmal/core/scope.hpp"

#include <algorithm>

#include "einmal/base/bytes.hpp"

namespace einmal {

bool is_valid_key(std::string_view key) {
  return !key.empty() && key.size() <= max_key_bytes &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x21 && c <= 0x7e; });
}

Result<Scope> Scope::make(std::string name_space, std::string caller, std::string operation,
                          std::string key) {
  const auto usable = [](const std::string& part) {
    return !part.empty() && part.size() <= max_scope_part_bytes;
  };
  if (!usable(name_space))
    return failure(ErrorCode::invalid, "scope: the namespace must have 1 to 1024 bytes");
  if (!usable(caller))
    return failure(ErrorCode::invalid, "scope: the caller must have 1 to 1024 bytes");
  if (!usable(operation))
    return failure(ErrorCode::invalid, "scope: the operation must have 1 to 1024 bytes");
  if (!is_valid_key(key)) {
    return failure(ErrorCode::invalid,
                   "scope: the idempotency key must have 1 to 255 visible ASCII characters");
  }
  return Scope(std::move(name_space), std::move(caller), std::move(operation), std::move(key));
}

Scope::Scope(std::string name_space, std::string caller, std::string operation, std::string key)
    : name_space_(std::move(name_space)),
      caller_(std::move(caller)),
      operation_(std::move(operation)),
      key_(std::move(key)) {}

std::string Scope::canonical_bytes() const {
  std::string out;
  out.reserve(32 + name_space_.size() + caller_.size() + operation_.size() + key_.size());
  append_length_prefixed(out, name_space_);
  append_length_prefixed(out, caller_);
  append_length_prefixed(out, operation_);
  append_length_prefixed(out, key_);
  return out;
}

}  // namespace einmal
