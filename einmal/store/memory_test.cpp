#include "einmal/store/memory.hpp"

#include "einmal/testing/memory_home.hpp"
#include "einmal/testing/store_contract.hpp"

namespace einmal::testing {
namespace {

MemoryOptions wall_clock() {
  MemoryOptions options;
  options.leases_on_wall_clock = true;
  return options;
}

const auto factories = ::testing::Values(memory_factory(), memory_factory(wall_clock()));

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, factories, StoreFactoryName());
INSTANTIATE_TEST_SUITE_P(Stores, RandomCommands, factories, StoreFactoryName());

/// Submits the next of a chain from inside `completed`.
class Chain final : public Command {
 public:
  Chain(Store& store, int length) : Command(request::Stats{}), store_(store), length_(length) {}
  void completed(Result<Answer>) noexcept override {
    if (--length_ > 0) store_.submit(*this);
  }
  int length() const { return length_; }

 private:
  Store& store_;
  int length_;
};

TEST(MemoryStore, AnswersACommandThatIsSubmittedFromAnAnswer) {
  VirtualClock clock;
  SystemRandom random;
  MemoryStore store(clock, random);
  Chain chain(store, 10);
  store.submit(chain);
  EXPECT_EQ(chain.length(), 0);
}

TEST(MemoryStore, SaysThatItIsNotDurable) {
  VirtualClock clock;
  SystemRandom random;
  const MemoryStore store(clock, random);
  EXPECT_FALSE(store.capabilities().durable);
  EXPECT_EQ(store.capabilities().name, "memory");
}

}  // namespace
}  // namespace einmal::testing
