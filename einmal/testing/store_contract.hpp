#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "einmal/base/random.hpp"
#include "einmal/store/store.hpp"
#include "einmal/testing/store_script.hpp"
#include "einmal/testing/virtual_clock.hpp"

/// The one contract of every store. A driver's test program links einmal::store_contract and says
///
///     INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContract, testing::Values(factory),
///     StoreFactoryName()); INSTANTIATE_TEST_SUITE_P(Sqlite, RandomCommands,
///     testing::Values(factory), StoreFactoryName());

namespace einmal::testing {

/// One home of records (a file, a database), fresh and empty, gone when this is destroyed.
class StoreHome {
 public:
  virtual ~StoreHome() = default;
  /// Opens what this home holds. The store before it was destroyed, unless
  /// `StoreFactory::several_at_once`. Never null.
  virtual std::unique_ptr<Store> open() = 0;
};

/// How the contract comes by a store, and what it may ask of it. A store that lacks something says
/// so here; the test that needs it then prints that it is skipped and why.
struct StoreFactory {
  std::string name;
  /// The home's stores run on `clock` for everything that decides. A store whose server has a clock
  /// of its own makes the server follow (see VirtualClock::listen).
  std::function<std::unique_ptr<StoreHome>(VirtualClock& clock)> make;

  bool survives_reopen = true;            ///< What was answered is there when it is opened again.
  bool several_at_once = false;           ///< One home may be open several times, as by processes.
  bool tells_of_foreign_changes = false;  ///< By `on_foreign_change`, announced or polled.
  bool leases_on_wall_clock = false;      ///< No boot clock: a reboot does not end leases.
  bool guards_wall_clock = true;          ///< Pauses expiry when the wall clock jumps ahead.
  Duration audit_retention = std::chrono::hours(24 * 400);

  friend std::ostream& operator<<(std::ostream& out, const StoreFactory& factory) {
    return out << factory.name;
  }
};

struct StoreFactoryName {
  std::string operator()(const ::testing::TestParamInfo<StoreFactory>& info) const {
    return info.param.name;
  }
};

/// A fresh store on a virtual clock.
class StoreTest : public ::testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override;

  /// Runs lines of a StoreScript, separated by ";", and answers with the description of the last
  /// answer. Beside the script's own: `wait DURATION`, `jump DURATION` (the wall clock alone),
  /// `reboot` (and reopen).
  std::string play(const std::string& script);
  /// How the store sees KEY now: "absent", "processing" ...
  std::string condition_of(const std::string& key);

  Store& store() { return *store_; }
  StoreHome& home() { return *home_; }
  VirtualClock& clock() { return clock_; }
  Random& random() { return random_; }
  void reopen();

 private:
  VirtualClock clock_;
  SystemRandom random_;
  std::unique_ptr<StoreHome> home_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<StoreScript> script_;
};

class StoreContract : public StoreTest {};
class RandomCommands : public StoreTest {};

}  // namespace einmal::testing
