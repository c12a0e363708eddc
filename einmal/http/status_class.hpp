#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/core/record.hpp"
#include "einmal/http/head.hpp"

namespace einmal::http {

/// What an answer says about the attempt that it answers. Every class speaks of one attempt: after
/// a takeover (attempts > 1) the core turns what proves nothing about earlier ones into uncertain.
enum class Outcome : std::uint8_t {
  completed,  ///< It happened; the answer is replayed.
  failed,     ///< Finally refused; the answer is replayed.
  released,   ///< It certainly did not happen; the key is free.
  uncertain,  ///< Nobody knows.
};
/// "completed", "failed", "released", "uncertain": as in configuration and Einmal-Outcome.
std::string_view name(Outcome outcome);
/// The inverse of `name`, byte by byte.
std::optional<Outcome> parse_outcome(std::string_view text);

/// An operation's own words over the default table, by status.
using OutcomeOverrides = std::map<int, Outcome>;

struct Verdict {
  Outcome outcome = Outcome::uncertain;
  Effect effect = Effect::known;  ///< unknown: a 500 that is replayed, whatever it did.
  bool declared = false;          ///< The upstream said so itself (event::Settle::declared).
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// One line of the default table: the first that covers a status decides.
struct StatusClass {
  int first, last;
  Outcome outcome;
  Effect effect;
};
/// The default table, which covers every status; for --explain and documentation.
const std::vector<StatusClass>& status_table();

/// What a final answer means: `Einmal-Outcome` first (unknown or doubled: uncertain), then the
/// operation's overrides, then the table.
Verdict classify(int status, const HeaderLines& answer, const OutcomeOverrides& overrides);

}  // namespace einmal::http
