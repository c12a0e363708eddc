#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "einmal/core/decide.hpp"

/// Records, events and a clock for the tests of the transition table. Not installed.
namespace einmal::decide_fixture {

using namespace std::chrono_literals;

inline Digest digest_of(std::uint8_t fill) {
  Digest digest;
  digest.fill(fill);
  return digest;
}

template <class Id>
Id id_of(char fill) {
  return *Id::from_bytes(std::string(16, fill));
}

inline const OwnerToken owner_a = id_of<OwnerToken>('a');
inline const OwnerToken owner_b = id_of<OwnerToken>('b');
inline const Fingerprint same{digest_of(1), digest_of(2)};
inline const Fingerprint other_body{digest_of(1), digest_of(3)};
inline const Fingerprint foreign_profile{digest_of(9), digest_of(2)};
inline const BootId this_boot = id_of<BootId>('B');
inline const BootId next_boot = id_of<BootId>('C');

inline const WallTime wall_start{Duration(1'700'000'000'000'000)};
inline const BootTime boot_start{Duration(5'000'000'000)};

/// The clock `after` the claim.
inline Now at(Duration after) { return {wall_start + after, boot_start + after, this_boot, false}; }

inline Policies promised(OnLeaseExpiry on_expiry) {
  Policies policies;
  policies.lease = 30s;
  policies.on_lease_expiry = on_expiry;
  policies.retention = 1h;
  return policies;
}

inline Policies without_lease() {
  Policies policies = promised(OnLeaseExpiry::uncertain);
  policies.lease.reset();
  return policies;
}

inline Policies refusing() {
  Policies policies = promised(OnLeaseExpiry::uncertain);
  policies.after_expiry = AfterExpiry::refuse;
  policies.tombstone = 2h;
  return policies;
}

inline event::Claim claim(const OwnerToken& owner, Fingerprint fingerprint = same,
                          Policies policies = promised(OnLeaseExpiry::uncertain),
                          std::uint64_t generation = 100) {
  return {fingerprint, policies, owner, id_of<OperationId>('o'), Generation{generation}};
}

inline StoredResult result_of(int status, std::string body = "done") {
  StoredResult result;
  result.status = status;
  result.body = std::move(body);
  return result;
}

/// Claimed at 0 by owner a under generation 7.
inline Record processing(Policies policies = promised(OnLeaseExpiry::uncertain),
                         std::uint32_t attempts = 1) {
  Record record;
  record.fingerprint = same;
  record.generation = Generation{7};
  record.owner = owner_a;
  record.operation_id = id_of<OperationId>('p');
  record.attempts = attempts;
  record.policies = policies;
  if (policies.lease) record.lease = Lease{boot_start + *policies.lease, this_boot};
  record.created = wall_start;
  record.claimed = wall_start;
  return record;
}

inline Record uncertain(UncertainCause cause, std::uint32_t attempts = 1) {
  Record record = processing(promised(OnLeaseExpiry::uncertain), attempts);
  record.state = State::uncertain;
  record.cause = cause;
  return record;
}

/// Settled at 0, expires at 1h.
inline Record settled(State state, Policies policies = promised(OnLeaseExpiry::uncertain),
                      SettledBy by = SettledBy::owner) {
  Record record = processing(policies);
  record.state = state;
  record.settled_by = by;
  record.lease.reset();
  record.settled = wall_start;
  record.expires = wall_start + policies.retention;
  if (state != State::freed) record.result = result_of(state == State::completed ? 201 : 402);
  return record;
}

inline event::Settle settle(const OwnerToken& owner, std::uint64_t generation, int status,
                            bool declared = false, event::Final outcome = event::Final::completed) {
  return {outcome, Generation{generation}, owner, result_of(status), declared};
}

/// The decision of kind D, or a failure that says which one came instead.
template <class D>
const D& expect(const Step& step) {
  const D* found = std::get_if<D>(&step.decision);
  if (!found) {
    ADD_FAILURE() << "decision of index " << step.decision.index() << " came instead";
    static const D none{};
    return none;
  }
  return *found;
}

inline void expect_unchanged(const Step& step) {
  EXPECT_EQ(step.change, Step::Change::none);
  EXPECT_FALSE(step.record.has_value());
  EXPECT_FALSE(step.audit.has_value());
}

/// The record that was put; the decision that carries a record carries the same.
inline Record expect_put(const Step& step, State state) {
  EXPECT_EQ(step.change, Step::Change::put);
  if (!step.record) return {};
  EXPECT_EQ(step.record->state, state);
  return *step.record;
}

inline void expect_erased(const Step& step) {
  EXPECT_EQ(step.change, Step::Change::erase);
  EXPECT_FALSE(step.record.has_value());
}

inline void expect_audit(const Step& step, AuditEvent event, std::optional<State> before,
                         std::optional<State> after) {
  ASSERT_TRUE(step.audit.has_value());
  EXPECT_EQ(step.audit->event, event);
  EXPECT_EQ(step.audit->before, before);
  EXPECT_EQ(step.audit->after, after);
}

}  // namespace einmal::decide_fixture
