#include "einmal/sqlite/open_records.hpp"

namespace einmal::sqlite {

void OpenRecords::keep(std::int64_t digest, const Scope& scope, Row row) {
  if (rows_.size() >= most) rows_.erase(rows_.begin());
  rows_.insert_or_assign(digest, Known{scope, std::move(row)});
}

std::optional<Row> OpenRecords::take(std::int64_t digest, const Scope& scope) {
  const auto found = rows_.find(digest);
  if (found == rows_.end() || found->second.scope != scope) return std::nullopt;
  std::optional<Row> row(std::move(found->second.row));
  rows_.erase(found);
  return row;
}

}  // namespace einmal::sqlite
