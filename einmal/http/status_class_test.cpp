#include "einmal/http/status_class.hpp"

#include <gtest/gtest.h>

#include <set>

namespace einmal::http {
namespace {

Outcome by_table(int status) { return classify(status, HeaderLines{}, {}).outcome; }

TEST(StatusClass, covers_every_status_as_the_contract_says) {
  const std::set<int> released = {307, 308, 400, 401, 403, 404, 405, 406, 407, 411, 412, 413, 414,
                                  415, 416, 417, 421, 422, 423, 425, 426, 428, 429, 431, 451, 501};
  for (int status = 100; status < 1000; ++status) {
    auto expected = Outcome::uncertain;
    if (status >= 200 && status < 400) expected = Outcome::completed;
    if (status >= 400 && status < 500 && status != 408) expected = Outcome::failed;
    if (status == 500) expected = Outcome::failed;
    if (released.count(status) == 1) expected = Outcome::released;
    const auto verdict = classify(status, HeaderLines{}, {});
    EXPECT_EQ(verdict.outcome, expected) << status;
    EXPECT_EQ(verdict.effect, status == 500 ? Effect::unknown : Effect::known) << status;
    EXPECT_FALSE(verdict.declared);
  }
  EXPECT_EQ(by_table(101), Outcome::uncertain);
  EXPECT_EQ(by_table(503), Outcome::uncertain);
  EXPECT_EQ(by_table(408), Outcome::uncertain);
  EXPECT_EQ(by_table(409), Outcome::failed);
  EXPECT_EQ(by_table(402), Outcome::failed);
}

TEST(StatusClass, yields_to_an_operations_own_words) {
  const OutcomeOverrides overrides = {{503, Outcome::released}, {500, Outcome::failed}};
  EXPECT_EQ(classify(503, HeaderLines{}, overrides).outcome, Outcome::released);
  EXPECT_EQ(classify(500, HeaderLines{}, overrides), (Verdict{Outcome::failed, Effect::known}));
  EXPECT_EQ(classify(502, HeaderLines{}, overrides).outcome, Outcome::uncertain);
}

TEST(StatusClass, yields_to_what_the_upstream_says_itself) {
  const OutcomeOverrides overrides = {{503, Outcome::failed}};
  const auto said = [&](std::initializer_list<HeaderLine> lines) {
    return classify(503, HeaderLines(lines), overrides);
  };
  EXPECT_EQ(said({{"einmal-outcome", "released"}}),
            (Verdict{Outcome::released, Effect::known, true}));
  EXPECT_EQ(said({{"Einmal-Outcome", "completed"}}),
            (Verdict{Outcome::completed, Effect::known, true}));
  EXPECT_EQ(said({{"Einmal-Outcome", "failed"}}).outcome, Outcome::failed);
  EXPECT_EQ(said({{"Einmal-Outcome", "uncertain"}}).outcome, Outcome::uncertain);
  for (const char* unknown : {"", "Released", "released,", "released, released", "done"}) {
    EXPECT_EQ(said({{"Einmal-Outcome", unknown}}).outcome, Outcome::uncertain) << unknown;
  }
  EXPECT_EQ(said({{"Einmal-Outcome", "released"}, {"Einmal-Outcome", "released"}}).outcome,
            Outcome::uncertain);
}

TEST(StatusClass, spells_outcomes_as_configuration_does) {
  for (const auto outcome :
       {Outcome::completed, Outcome::failed, Outcome::released, Outcome::uncertain}) {
    EXPECT_EQ(parse_outcome(name(outcome)), outcome);
  }
  EXPECT_EQ(parse_outcome("free"), std::nullopt);
}

}  // namespace
}  // namespace einmal::http
