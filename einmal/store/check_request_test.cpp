#include "einmal/store/check_request.hpp"

#include <gtest/gtest.h>

#include "einmal/core/limits.hpp"
#include "einmal/testing/store_script.hpp"

namespace einmal {
namespace {

using testing::StoreScript;

request::Transition forget(Actor actor) {
  return {StoreScript::scope("k"), event::Forget{Generation{1}}, nullptr, std::move(actor)};
}

request::Transition claim_under(std::shared_ptr<const Profile> profile) {
  event::Claim claim;
  claim.owner = StoreScript::token("a");
  claim.operation_id = *OperationId::from_bytes(std::string(16, 'o'));
  claim.fingerprint.profile = StoreScript::profile(1).id;
  return {StoreScript::scope("k"), claim, std::move(profile), {}};
}

void expect_refused(const Request& request) {
  const auto checked = check_request(request);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ErrorCode::invalid);
}

TEST(CheckRequest, WantsToKnowWhoActsAsOperator) {
  EXPECT_TRUE(check_request(forget({"operator", ""})).has_value());
  expect_refused(forget({}));
  expect_refused(request::AcceptTime{});
  expect_refused(request::AdvanceGenerations{});
}

TEST(CheckRequest, BoundsWhatGoesToTheAudit) {
  expect_refused(forget({std::string(max_actor_bytes + 1, 'w'), ""}));
  expect_refused(forget({"operator", std::string(max_evidence_bytes + 1, 'e')}));
}

TEST(CheckRequest, WantsTheProfileThatTheFingerprintNames) {
  EXPECT_TRUE(check_request(claim_under(nullptr)).has_value());
  EXPECT_TRUE(
      check_request(claim_under(std::make_shared<Profile>(StoreScript::profile(1)))).has_value());
  expect_refused(claim_under(std::make_shared<Profile>(StoreScript::profile(2))));
  Profile long_one = StoreScript::profile(1);
  long_one.definition.assign(max_profile_bytes + 1, 'p');
  expect_refused(claim_under(std::make_shared<Profile>(long_one)));
}

TEST(CheckRequest, RefusesEventsBeyondTheirLimits) {
  auto claim = claim_under(nullptr);
  std::get<event::Claim>(claim.event).policies.lease = -std::chrono::seconds(1);
  expect_refused(claim);
}

TEST(Batches, AreBoundedOnBothSides) {
  EXPECT_EQ(bounded(0), 1u);
  EXPECT_EQ(bounded(200), 200u);
  EXPECT_EQ(bounded(1'000'000), max_batch);
}

}  // namespace
}  // namespace einmal
