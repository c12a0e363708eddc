#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "einmal/core/scope.hpp"
#include "einmal/sqlite/record_table.hpp"

namespace einmal::sqlite {

/// Rows of processing records as the writer has just written them, so that their completion need
/// not read them again. True only while nobody else has written: forgotten with every rollback,
/// every foreign commit, every reopening.
class OpenRecords {
 public:
  static constexpr std::size_t most = 4096;

  void keep(std::int64_t digest, const Scope& scope, Row row);
  /// The row, which is then no longer kept.
  std::optional<Row> take(std::int64_t digest, const Scope& scope);
  void forget_all() { rows_.clear(); }

 private:
  struct Known {
    Scope scope;
    Row row;
  };
  std::unordered_map<std::int64_t, Known> rows_;
};

}  // namespace einmal::sqlite
