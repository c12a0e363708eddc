#include "einmal/sqlite/profile_table.hpp"

#include <cstring>

#include <fmt/format.h>

#include "einmal/sqlite/columns.hpp"

namespace einmal::sqlite {

using sqlite_file::Connection;
using sqlite_file::ResetAtEnd;

std::size_t ProfileTable::DigestHash::operator()(const Digest& digest) const noexcept {
  std::size_t word = 0;
  std::memcpy(&word, digest.data(), sizeof word);
  return word;
}

Result<ProfileTable> ProfileTable::prepare(Connection& connection) {
  ProfileTable table(connection);
  Preparer prepare(connection);
  prepare(table.id_of_, "SELECT id FROM profile WHERE number = ?1");
  prepare(table.find_, "SELECT number, definition FROM profile WHERE id = ?1");
  prepare(table.add_, "INSERT INTO profile (id) VALUES (?1)");
  prepare(table.keep_, "UPDATE profile SET definition = ?2 WHERE id = ?1 AND definition IS NULL");
  if (auto failed = prepare.failed()) return failure(failed->code, failed->message);
  return table;
}

Result<Digest> ProfileTable::id_of(std::int64_t number) {
  if (const auto known = ids_.find(number); known != ids_.end()) return known->second;
  ResetAtEnd reset(id_of_);
  id_of_.bind(1, number);
  auto row = id_of_.step();
  if (!row) return pass_on(row);
  const auto id = *row ? digest_from(id_of_.bytes(0)) : std::nullopt;
  if (!id) {
    return failure(ErrorCode::corrupt, fmt::format("{}: profile {} is missing or damaged",
                                                   connection_->path(), number));
  }
  ids_.emplace(number, *id);
  return *id;
}

Result<std::int64_t> ProfileTable::number_of(const Digest& id) {
  if (const auto known = numbers_.find(id); known != numbers_.end()) return known->second;
  std::int64_t number = 0;
  {
    ResetAtEnd reset(find_);
    find_.bind_blob(1, as_bytes(id));
    auto row = find_.step();
    if (!row) return pass_on(row);
    if (*row) number = find_.integer(0);
  }
  if (number == 0) {
    add_.bind_blob(1, as_bytes(id));
    if (auto added = add_.run(); !added) return pass_on(added);
    number = connection_->last_insert_id();
  }
  numbers_.emplace(id, number);
  return number;
}

Result<void> ProfileTable::keep(const Profile& profile) {
  if (kept_.contains(profile.id)) return {};
  if (auto number = number_of(profile.id); !number) return pass_on(number);
  keep_.bind_blob(1, as_bytes(profile.id));
  keep_.bind_blob(2, profile.definition);
  if (auto kept = keep_.run(); !kept) return pass_on(kept);
  kept_.emplace(profile.id, true);
  return {};
}

Result<std::optional<Bytes>> ProfileTable::definition(const Digest& id) {
  ResetAtEnd reset(find_);
  find_.bind_blob(1, as_bytes(id));
  auto row = find_.step();
  if (!row) return pass_on(row);
  if (!*row || find_.is_null(1)) return std::optional<Bytes>();
  return std::optional<Bytes>(find_.bytes(1));
}

void ProfileTable::forget_additions() {
  ids_.clear();
  numbers_.clear();
  kept_.clear();
}

}  // namespace einmal::sqlite
