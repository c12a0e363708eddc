#pragma once

#include <memory>
#include <optional>

#include "einmal/core/record.hpp"
#include "einmal/sqlite/store_file.hpp"
#include "einmal/store/store.hpp"

namespace einmal::sqlite {

/// A read that may take long, done in slices so that look-ups get their turn between them and no
/// snapshot stands in the way of a checkpoint. Keeps nothing of the connection between slices.
class Scan {
 public:
  virtual ~Scan() = default;
  /// Does one slice. An answer: it is finished.
  virtual Result<std::optional<Answer>> slice(StoreFile& file, const ScopeDigests& digests,
                                              const Now& now) = 0;
};

/// The scan that answers `request`; null if it is not one that needs a scan.
std::unique_ptr<Scan> scan_for(const Request& request);

/// A record as the store's clock sees it.
StoredRecord as_seen(Scope scope, Record record, const Now& now);

}  // namespace einmal::sqlite
