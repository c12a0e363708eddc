#include "einmal/postgres/statements.hpp"

#include <libpq-fe.h>

#include <algorithm>

#include "einmal/postgres/connection.hpp"
#include "einmal/postgres/record_row.hpp"

namespace einmal::postgres {

namespace {

const event::Claim& claim_of(const Command& command) {
  return std::get<event::Claim>(std::get<request::Transition>(command.request()).event);
}

const request::Transition& transition_of(const Command& command) {
  return std::get<request::Transition>(command.request());
}

void add_machine(Parameters& parameters, const Machine& machine) {
  parameters.uuid(machine.boot_id.bytes()).int8(machine.boot.time_since_epoch().count());
}

/// The four parts of many scopes.
struct ScopeArrays {
  Array name_spaces{Type::bytes}, callers{Type::bytes}, operations{Type::bytes}, keys{Type::bytes};

  void add(const Scope& scope) {
    name_spaces.add(BytesView(scope.name_space()));
    callers.add(BytesView(scope.caller()));
    operations.add(BytesView(scope.operation()));
    keys.add(BytesView(scope.key()));
  }
  void to(Parameters& parameters) const {
    parameters.add(name_spaces).add(callers).add(operations).add(keys);
  }
};

/// Many results, or none, as seven arrays.
struct ResultArrays {
  Array statuses{Type::int4}, headers{Type::bytes}, bodies{Type::bytes}, kept{Type::int2},
      effects{Type::int2}, versions{Type::int4}, resources{Type::bytes};

  void add(const StoredResult* result) {
    if (!result) {
      for (Array* array : {&statuses, &headers, &bodies, &kept, &effects, &versions, &resources})
        array->add_null();
      return;
    }
    statuses.add(wire_int4(result->status));
    headers.add(BytesView(result->headers));
    bodies.add(BytesView(result->body));
    kept.add(wire_int2(static_cast<std::int16_t>(result->body_kept)));
    effects.add(wire_int2(static_cast<std::int16_t>(result->effect)));
    versions.add(wire_int4(result->representation_version));
    resources.add(Value(result->resource_id));
  }
  void to(Parameters& parameters) const {
    parameters.add(statuses).add(headers).add(bodies).add(kept).add(effects).add(versions).add(
        resources);
  }
};

/// One owner event, flattened.
struct OwnerEvent {
  const char* kind = "";
  Generation generation{};
  OwnerToken owner;
  Value outcome, declared, cause;
  const StoredResult* result = nullptr;
};

struct Flatten {
  OwnerEvent operator()(const event::Settle& e) const {
    return {"settle",
            e.generation,
            e.owner,
            wire_int2(static_cast<std::int16_t>(e.outcome)),
            wire_bool(e.declared),
            std::nullopt,
            &e.result};
  }
  OwnerEvent operator()(const event::MarkUncertain& e) const {
    return {"mark_uncertain",
            e.generation,
            e.owner,
            std::nullopt,
            std::nullopt,
            wire_int2(static_cast<std::int16_t>(e.cause)),
            e.seen ? &*e.seen : nullptr};
  }
  OwnerEvent operator()(const event::Renew& e) const { return plain("renew", e); }
  OwnerEvent operator()(const event::Release& e) const { return plain("release", e); }
  OwnerEvent operator()(const event::Abandon& e) const { return plain("abandon", e); }
  template <class Other>
  OwnerEvent operator()(const Other&) const {
    return {};
  }

 private:
  template <class Event>
  static OwnerEvent plain(const char* kind, const Event& e) {
    OwnerEvent out;
    out.kind = kind;
    out.generation = e.generation;
    out.owner = e.owner;
    return out;
  }
};

/// Columns before the record's: ord, decision, takeover, repeated, lease_left, condition,
/// contradicts, at.
constexpr int step_columns = 8;

std::string step_list() {
  return "x.ord, (x.s).decision, (x.s).takeover, (x.s).repeated, (x.s).lease_left, "
         "(x.s).condition, (x.s).contradicts, (x.s).at, " +
         record_columns("((x.s).r)");
}

/// What was just settled need not come back: the one who settled it has it.
std::string without_echo(std::string list) {
  for (const std::string column : {"((x.s).r).headers", "((x.s).r).body"}) {
    const auto at = list.find(column + ",");
    list.replace(at, column.size(),
                 "case when (x.s).repeated is false then '' else " + column + " end");
  }
  return list;
}

const std::string& claims_sql() {
  static const std::string sql = "select " + step_list() +
                                 " from einmal.claims($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
                                 "$11, $12, $13, $14, $15, $16) x";
  return sql;
}

const std::string& owner_events_sql() {
  static const std::string sql =
      "select " + without_echo(step_list()) +
      " from einmal.owner_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, "
      "$16, $17, $18, $19) x";
  return sql;
}

StepAnswer unusable(Error error) {
  StepAnswer answer;
  answer.kind = StepAnswer::Kind::unusable;
  answer.error = std::move(error);
  return answer;
}

/// The decision that a row tells, with its record.
Result<Decision> decision_of(const Row& row, std::string_view word, std::optional<Record> record) {
  if (word == "ok") return decision::Ok{std::move(record)};
  if (word == "lost")
    return decision::Lost{std::move(record), static_cast<Condition>(row.integer(5)),
                          row.boolean(6)};
  if (word == "changed") return decision::Changed{std::move(record)};
  if (word == "unchanged") return decision::Unchanged{};
  if (!record) return failure(ErrorCode::internal, "postgres: a decision without its record");
  if (word == "execute")
    return decision::Execute{std::move(*record), row.boolean(2), row.boolean(3)};
  if (word == "replay") return decision::Replay{std::move(*record)};
  if (word == "mismatch") return decision::Mismatch{std::move(*record)};
  if (word == "other_profile") return decision::OtherProfile{record->fingerprint.profile};
  if (word == "in_progress") {
    const Duration age = std::max(Duration::zero(), row.time(7) - record->claimed);
    return decision::InProgress{std::move(*record), row.optional_interval(4), age};
  }
  if (word == "uncertain") return decision::Uncertain{std::move(*record), !row.boolean(3)};
  if (word == "gone") return decision::Gone{std::move(*record)};
  if (word == "became_uncertain") return decision::BecameUncertain{std::move(*record)};
  return failure(ErrorCode::incompatible,
                 "postgres: the schema answers with a decision that this version does not know; "
                 "use the einmal that migrated it");
}

StepAnswer step_of(const Row& row) {
  std::optional<Record> record;
  if (!no_record(row, step_columns)) {
    auto found = read_record(row, step_columns);
    if (!found) return unusable(found.error());
    record = std::move(*found);
  }
  StepAnswer answer;
  if (row.bytes(1) == "busy") {
    answer.kind = StepAnswer::Kind::busy;
    answer.record = std::move(record);
    return answer;
  }
  auto decision = decision_of(row, row.bytes(1), std::move(record));
  if (!decision) return unusable(decision.error());
  answer.decision = std::move(*decision);
  return answer;
}

/// Gives the result of a fresh settlement back to its decision.
void restore_echo(const Row& row, const Command& command, StepAnswer& answer) {
  const auto* settle = std::get_if<event::Settle>(&transition_of(command).event);
  if (!settle || row.is_null(3) || row.boolean(3)) return;
  if (auto* ok = std::get_if<decision::Ok>(&answer.decision); ok && ok->record)
    ok->record->result = settle->result;
}

}  // namespace

bool is_claim(const Command& command) {
  const auto* transition = std::get_if<request::Transition>(&command.request());
  return transition && std::holds_alternative<event::Claim>(transition->event);
}

bool is_owner_event(const Command& command) {
  const auto* transition = std::get_if<request::Transition>(&command.request());
  return transition && *std::visit(Flatten{}, transition->event).kind != '\0';
}

Statement claims_statement(const std::vector<Command*>& claims, const Machine& machine,
                           const std::set<Digest>& known) {
  ScopeArrays scopes;
  Array profiles(Type::bytes), definitions(Type::bytes), fingerprints(Type::bytes),
      leases(Type::interval), on_expiry(Type::int2), retentions(Type::interval), after(Type::int2),
      tombstones(Type::interval), owners(Type::uuid), ids(Type::uuid);
  for (const Command* command : claims) {
    const event::Claim& claim = claim_of(*command);
    const auto& profile = transition_of(*command).profile;
    scopes.add(transition_of(*command).scope);
    profiles.add(BytesView(profile_bytes(claim.fingerprint.profile)));
    const bool send = profile && !known.contains(profile->id) && profile->id != Digest{};
    send ? definitions.add(BytesView(profile->definition)) : definitions.add_null();
    fingerprints.add(digest_bytes(claim.fingerprint.digest));
    claim.policies.lease ? leases.add(wire_interval(*claim.policies.lease)) : leases.add_null();
    on_expiry.add(wire_int2(static_cast<std::int16_t>(claim.policies.on_lease_expiry)));
    retentions.add(wire_interval(claim.policies.retention));
    after.add(wire_int2(static_cast<std::int16_t>(claim.policies.after_expiry)));
    tombstones.add(wire_interval(claim.policies.tombstone));
    owners.add(claim.owner.bytes());
    ids.add(claim.operation_id.bytes());
  }
  Statement statement{"einmal_claims", claims_sql().c_str(), {}};
  add_machine(statement.parameters, machine);
  scopes.to(statement.parameters);
  statement.parameters.add(profiles).add(definitions).add(fingerprints).add(leases).add(on_expiry);
  statement.parameters.add(retentions).add(after).add(tombstones).add(owners).add(ids);
  return statement;
}

Statement owner_events_statement(const std::vector<Command*>& events, const Machine& machine) {
  ScopeArrays scopes;
  ResultArrays results;
  Array kinds(Type::text), generations(Type::int8), owners(Type::uuid), outcomes(Type::int2),
      declared(Type::boolean), causes(Type::int2);
  for (const Command* command : events) {
    const OwnerEvent event = std::visit(Flatten{}, transition_of(*command).event);
    scopes.add(transition_of(*command).scope);
    kinds.add(BytesView(event.kind));
    generations.add(wire_int8(static_cast<std::int64_t>(number(event.generation))));
    owners.add(event.owner.bytes());
    outcomes.add(event.outcome);
    declared.add(event.declared);
    causes.add(event.cause);
    results.add(event.result);
  }
  Statement statement{"einmal_owner_events", owner_events_sql().c_str(), {}};
  add_machine(statement.parameters, machine);
  statement.parameters.add(kinds);
  scopes.to(statement.parameters);
  statement.parameters.add(generations).add(owners).add(outcomes).add(declared).add(causes);
  results.to(statement.parameters);
  return statement;
}

void read_steps(const pg_result* result, const std::vector<Command*>& commands,
                const StepSink& sink) {
  for (int i = 0; i < PQntuples(result); ++i) {
    const Row row(result, i);
    const auto at = static_cast<std::size_t>(row.integer(0) - 1);
    if (at >= commands.size()) continue;
    StepAnswer answer = step_of(row);
    if (commands[at] && answer.kind == StepAnswer::Kind::decided)
      restore_echo(row, *commands[at], answer);
    sink(at, std::move(answer));
  }
}

}  // namespace einmal::postgres
