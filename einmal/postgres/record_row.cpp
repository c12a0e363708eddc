#include "einmal/postgres/record_row.hpp"

#include <array>
#include <cstring>

namespace einmal::postgres {

namespace {

enum Column : int {
  generation,
  owner,
  operation_id,
  attempts,
  state,
  profile,
  fingerprint,
  lease,
  on_lease_expiry,
  retention,
  after_expiry,
  tombstone,
  lease_end,
  cause,
  settled_by,
  created,
  claimed,
  settled,
  expires,
  status,
  headers,
  body,
  body_kept,
  effect,
  representation_version,
  resource_id,
  name_space,
  caller,
  operation,
  key,
};

constexpr std::array<const char*, record_column_count> names{
    "generation",   "owner",       "operation_id", "attempts",        "state",
    "profile",      "fingerprint", "lease",        "on_lease_expiry", "retention",
    "after_expiry", "tombstone",   "lease_end",    "cause",           "settled_by",
    "created",      "claimed",     "settled",      "expires",         "status",
    "headers",      "body",        "body_kept",    "effect",          "representation_version",
    "resource_id",  "namespace",   "caller",       "operation",       "key"};

Error corrupt(const char* column) {
  return {ErrorCode::corrupt, std::string("postgres: einmal.record holds a value of ") + column +
                                  " that this version does not know; run einmal doctor"};
}

template <class Enum>
bool read_enum(std::int64_t value, Enum first, Enum last, Enum& out) {
  if (value < static_cast<std::int64_t>(first) || value > static_cast<std::int64_t>(last))
    return false;
  out = static_cast<Enum>(value);
  return true;
}

/// What a claim wrote; false names the first column that is not understood.
const char* read_identity(const Row& row, int first, Record& record) {
  record.generation = Generation{static_cast<std::uint64_t>(row.integer(first + generation))};
  record.attempts = static_cast<std::uint32_t>(row.integer(first + attempts));
  const auto owner_token = OwnerToken::from_bytes(row.bytes(first + owner));
  const auto id = OperationId::from_bytes(row.bytes(first + operation_id));
  const auto profile_id = read_digest(row.bytes(first + profile), true);
  const auto digest = read_digest(row.bytes(first + fingerprint), false);
  if (!owner_token) return "owner";
  if (!id) return "operation_id";
  if (!profile_id) return "profile";
  if (!digest) return "fingerprint";
  record.owner = *owner_token;
  record.operation_id = *id;
  record.fingerprint = {*profile_id, *digest};
  record.created = row.time(first + created);
  record.claimed = row.time(first + claimed);
  return nullptr;
}

const char* read_policies(const Row& row, int first, Policies& policies) {
  policies.lease = row.optional_interval(first + lease);
  policies.retention = row.interval(first + retention);
  policies.tombstone = row.interval(first + tombstone);
  if (!read_enum(row.integer(first + on_lease_expiry), OnLeaseExpiry::uncertain,
                 OnLeaseExpiry::takeover, policies.on_lease_expiry))
    return "on_lease_expiry";
  if (!read_enum(row.integer(first + after_expiry), AfterExpiry::claim_anew, AfterExpiry::refuse,
                 policies.after_expiry))
    return "after_expiry";
  return nullptr;
}

const char* read_state(const Row& row, int first, Record& record) {
  // The server has no boot clock: its leases stand on its wall clock, under the nil boot id.
  if (const auto end = row.optional_time(first + lease_end))
    record.lease = Lease{BootTime(end->time_since_epoch()), BootId{}};
  record.settled = row.optional_time(first + settled);
  record.expires = row.optional_time(first + expires);
  record.result = read_result(row, first + status);
  if (!read_enum(row.integer(first + state), State::processing, State::freed, record.state))
    return "state";
  if (!read_enum(row.integer(first + cause), UncertainCause::none, UncertainCause::operator_doubt,
                 record.cause))
    return "cause";
  if (!read_enum(row.integer(first + settled_by), SettledBy::nobody, SettledBy::reconciler,
                 record.settled_by))
    return "settled_by";
  return nullptr;
}

}  // namespace

std::string record_columns(const std::string& composite) {
  std::string out;
  for (const char* name : names) out += (out.empty() ? "" : ", ") + composite + "." + name;
  return out;
}

bool no_record(const Row& row, int first) { return row.is_null(first + generation); }

Result<Record> read_record(const Row& row, int first) {
  Record record;
  const char* wrong = read_identity(row, first, record);
  if (!wrong) wrong = read_policies(row, first, record.policies);
  if (!wrong) wrong = read_state(row, first, record);
  if (wrong) return tl::unexpected(corrupt(wrong));
  return record;
}

Result<Scope> read_scope(const Row& row, int first) {
  return Scope::make(Bytes(row.bytes(first + name_space)), Bytes(row.bytes(first + caller)),
                     Bytes(row.bytes(first + operation)), Bytes(row.bytes(first + key)));
}

std::optional<StoredResult> read_result(const Row& row, int first) {
  if (row.is_null(first)) return std::nullopt;
  StoredResult result;
  result.status = static_cast<int>(row.integer(first));
  result.headers = row.bytes(first + 1);
  result.body = row.bytes(first + 2);
  result.body_kept = static_cast<BodyKept>(row.integer(first + 3));
  result.effect = static_cast<Effect>(row.integer(first + 4));
  result.representation_version = static_cast<int>(row.integer(first + 5));
  result.resource_id = row.optional_bytes(first + 6);
  return result;
}

BytesView digest_bytes(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Bytes profile_bytes(const Digest& profile) {
  return profile == Digest{} ? Bytes() : Bytes(digest_bytes(profile));
}

std::optional<Digest> read_digest(BytesView bytes, bool or_empty) {
  Digest digest{};
  if (bytes.empty() && or_empty) return digest;
  if (bytes.size() != digest.size()) return std::nullopt;
  std::memcpy(digest.data(), bytes.data(), digest.size());
  return digest;
}

}  // namespace einmal::postgres
