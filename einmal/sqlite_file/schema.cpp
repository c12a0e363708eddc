#include "einmal/sqlite_file/schema.hpp"

#include <fmt/format.h>

#include "einmal/sqlite_file/transaction.hpp"

namespace einmal::sqlite_file {

Result<int> ensure_schema(Connection& connection) {
  const FileKind& kind = connection.kind();
  const auto wanted = static_cast<std::int64_t>(kind.steps.size());
  auto version = connection.query_integer("PRAGMA user_version");
  if (!version) return pass_on(version);
  if (*version >= wanted) return static_cast<int>(*version);

  auto control = TransactionControl::prepare(connection);
  if (!control) return pass_on(control);
  Transaction transaction(*control);
  if (auto begun = transaction.begin_write(); !begun) return pass_on(begun);
  version = connection.query_integer("PRAGMA user_version");  // another process may be quicker
  if (!version) return pass_on(version);
  if (*version >= wanted) return static_cast<int>(*version);
  for (auto step = *version; step < wanted; ++step) {
    auto done = connection.execute(kind.steps[static_cast<std::size_t>(step)]);
    if (!done) return pass_on(done);
  }
  const auto mark = fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                kind.application_id, wanted);
  if (auto marked = connection.execute(mark.c_str()); !marked) return pass_on(marked);
  if (auto committed = transaction.commit(); !committed) return pass_on(committed);
  return static_cast<int>(wanted);
}

Error newer_version(const Connection& connection, int found) {
  return {ErrorCode::incompatible,
          fmt::format("{}: this {} has schema version {}; this program writes version {} and may "
                      "not write to it; use the newer program",
                      connection.path(), connection.kind().name, found,
                      connection.kind().steps.size())};
}

}  // namespace einmal::sqlite_file
