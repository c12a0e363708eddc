#include "einmal/core/check_limits.hpp"

#include "einmal/core/decide_fixture.hpp"

namespace einmal {
namespace {

using namespace decide_fixture;

void expect_refused(const Event& event) {
  const auto checked = check_limits(event);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ErrorCode::invalid);
}

TEST(Limits, TakePoliciesUpToTheirBoundsAndNotBeyond) {
  const auto lease = [](Duration d) {
    Policies policies;
    policies.lease = d;
    return check_limits(policies).has_value();
  };
  EXPECT_TRUE(lease(min_lease));
  EXPECT_TRUE(lease(max_lease));
  EXPECT_FALSE(lease(min_lease - 1us));
  EXPECT_FALSE(lease(max_lease + 1us));
  EXPECT_FALSE(lease(-1s));

  const auto retention = [](Duration d) {
    Policies policies;
    policies.retention = d;
    return check_limits(policies).has_value();
  };
  EXPECT_TRUE(retention(min_retention));
  EXPECT_TRUE(retention(max_retention));
  EXPECT_FALSE(retention(Duration::zero()));
  EXPECT_FALSE(retention(max_retention + 1us));

  const auto tombstone = [](Duration d, AfterExpiry after) {
    Policies policies;
    policies.tombstone = d;
    policies.after_expiry = after;
    return check_limits(policies).has_value();
  };
  EXPECT_FALSE(tombstone(Duration::zero(), AfterExpiry::refuse));
  EXPECT_FALSE(tombstone(max_tombstone + 1us, AfterExpiry::refuse));
  EXPECT_TRUE(tombstone(Duration::zero(), AfterExpiry::claim_anew));
}

TEST(Limits, TakeEveryEventOfTheFixture) {
  EXPECT_TRUE(check_limits(Event(claim(owner_a))).has_value());
  EXPECT_TRUE(check_limits(Event(settle(owner_a, 7, 201))).has_value());
  EXPECT_TRUE(check_limits(Event(event::Renew{Generation{7}, owner_a})).has_value());
  EXPECT_TRUE(check_limits(Event(event::Sweep{})).has_value());
}

TEST(Limits, RefuseTokensThatWereNotDrawn) {
  expect_refused(claim(OwnerToken{}));
  event::Claim without_operation = claim(owner_a);
  without_operation.operation_id = {};
  expect_refused(without_operation);
  expect_refused(event::Renew{Generation{7}, {}});
  expect_refused(event::Release{Generation{0}, owner_a});
  expect_refused(event::Forget{});
  expect_refused(event::Doubt{});
}

TEST(Limits, RefuseResultsThatNoStoreMayHold) {
  event::Settle event = settle(owner_a, 7, 99);
  expect_refused(event);
  event = settle(owner_a, 7, 201);
  event.result.headers.assign(max_stored_header_bytes + 1, 'h');
  expect_refused(event);
  event = settle(owner_a, 7, 201);
  event.result.body.assign(max_stored_body_bytes + 1, 'b');
  expect_refused(event);
  event = settle(owner_a, 7, 201);
  event.result.body_kept = BodyKept::too_large;
  expect_refused(event);
  event = settle(owner_a, 7, 201);
  event.result.resource_id = std::string(max_resource_id_bytes + 1, 'r');
  expect_refused(event);
}

TEST(Limits, RefuseAResolutionWithoutItsResultOrByAnOwner) {
  event::Resolve event;
  event.generation = Generation{7};
  expect_refused(event);
  event.to = event::Resolution::failed;
  expect_refused(event);
  event.to = event::Resolution::freed;
  EXPECT_TRUE(check_limits(Event(event)).has_value());
  event.by = SettledBy::owner;
  expect_refused(event);
}

TEST(Limits, LetOnlyTheStoreSayThatALeaseEnded) {
  for (const UncertainCause cause :
       {UncertainCause::none, UncertainCause::lease_end, UncertainCause::after_takeover,
        UncertainCause::operator_doubt})
    expect_refused(event::MarkUncertain{Generation{7}, owner_a, cause, std::nullopt});
  const event::MarkUncertain stopped{Generation{7}, owner_a, UncertainCause::owner_stopped, {}};
  EXPECT_TRUE(check_limits(Event(stopped)).has_value());
}

}  // namespace
}  // namespace einmal
