#include "shop/books.hpp"

#include <charconv>

namespace einmal::shop {

namespace {

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc{} || end != text.data() + text.size())
    throw BooksFailed("the books hold something else where a number should be");
  return value;
}

Entry entry_of(const Row& row) {
  return {row.at(0), row.at(1), row.at(2), number(row.at(3)), row.at(4), row.at(5)};
}

}  // namespace

bool Books::add(const Entry& entry, const std::optional<Fence>& fence) {
  if (!pass(fence)) return false;
  connection_.run(
      "INSERT INTO entries(kind, id, item, currency, key, amount) VALUES($1, $2, $3, $4, $5, $6)",
      {entry.kind, entry.id, entry.item, entry.currency, entry.key, std::to_string(entry.amount)});
  note_effect(entry);
  return true;
}

Books::Put Books::put(const Entry& entry, const std::optional<Fence>& fence) {
  if (!pass(fence)) return Put::stale;
  auto before = find(entry.kind, entry.id);
  if (before) {
    before->key = entry.key;
    if (*before == entry) return Put::unchanged;
  }
  connection_.run(
      "INSERT INTO entries(kind, id, item, currency, key, amount) VALUES($1, $2, $3, $4, $5, $6)"
      " ON CONFLICT(kind, id) DO UPDATE SET item = $3, currency = $4, key = $5, amount = $6",
      {entry.kind, entry.id, entry.item, entry.currency, entry.key, std::to_string(entry.amount)});
  note_effect(entry);
  return before ? Put::replaced : Put::created;
}

bool Books::remove(const std::string& kind, const std::string& id) {
  return !connection_
              .run("DELETE FROM entries WHERE kind = $1 AND id = $2 RETURNING id", {kind, id})
              .empty();
}

std::optional<Entry> Books::find(const std::string& kind, const std::string& id) {
  const auto rows = connection_.run(
      "SELECT id, kind, item, amount, currency, key FROM entries WHERE kind = $1 AND id = $2",
      {kind, id});
  return rows.empty() ? std::nullopt : std::optional(entry_of(rows.front()));
}

std::vector<Entry> Books::with_key(const std::string& kind, const std::string& key) {
  std::vector<Entry> found;
  for (const auto& row : connection_.run("SELECT id, kind, item, amount, currency, key FROM entries"
                                         " WHERE kind = $1 AND key = $2 AND key <> ''",
                                         {kind, key}))
    found.push_back(entry_of(row));
  return found;
}

Effects Books::effects(const std::string& item) {
  Effects effects;
  const auto total = connection_.run(
      "SELECT count(*) FROM effects WHERE $1 = ''"
      " OR (kind, id) IN (SELECT kind, id FROM entries WHERE item = $1)",
      {item});
  effects.count = static_cast<std::uint64_t>(number(total.at(0).at(0)));
  for (const auto& row :
       connection_.run("SELECT key, count(*) FROM effects WHERE key <> '' AND ($1 = ''"
                       " OR (kind, id) IN (SELECT kind, id FROM entries WHERE item = $1))"
                       " GROUP BY key",
                       {item}))
    effects.by_key[row.at(0)] = static_cast<std::uint64_t>(number(row.at(1)));
  return effects;
}

/// Compares the fence's token with what was seen, and remembers it.
bool Books::pass(const std::optional<Fence>& fence) {
  if (!fence) return true;
  return !connection_
              .run(
                  "INSERT INTO fences(name, token) VALUES($1, $2) ON CONFLICT(name) DO UPDATE SET"
                  " token = excluded.token WHERE fences.token <= excluded.token RETURNING name",
                  {fence->of, std::to_string(fence->token)})
              .empty();
}

void Books::note_effect(const Entry& entry) {
  connection_.run("INSERT INTO effects(kind, id, key) VALUES($1, $2, $3)",
                  {entry.kind, entry.id, entry.key});
}

}  // namespace einmal::shop
