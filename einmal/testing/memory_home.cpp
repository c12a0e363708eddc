#include "einmal/testing/memory_home.hpp"

#include <utility>

namespace einmal::testing {

namespace {

/// A handle: many of them stand for many processes that have opened one store.
class Handle final : public Store {
 public:
  explicit Handle(Store& store) : store_(store) {}
  const Capabilities& capabilities() const override { return store_.capabilities(); }
  void submit(Command& command) override { store_.submit(command); }
  const Bytes& digest_secret() const override { return store_.digest_secret(); }
  void on_foreign_change(std::function<void()> listener) override {
    store_.on_foreign_change(std::move(listener));
  }
  void await_foreign_changes(bool wanted) override { store_.await_foreign_changes(wanted); }

 private:
  Store& store_;
};

class MemoryHome final : public StoreHome {
 public:
  MemoryHome(const Clock& clock, MemoryOptions options) : store_(clock, random_, options) {}
  std::unique_ptr<Store> open() override { return std::make_unique<Handle>(store_); }

 private:
  SystemRandom random_;
  MemoryStore store_;
};

}  // namespace

StoreFactory memory_factory(MemoryOptions options) {
  StoreFactory factory;
  factory.name = options.leases_on_wall_clock ? "MemoryOnTheWallClock" : "Memory";
  factory.make = [options](VirtualClock& clock) {
    return std::make_unique<MemoryHome>(clock, options);
  };
  factory.several_at_once = true;
  factory.leases_on_wall_clock = options.leases_on_wall_clock;
  factory.audit_retention = options.audit_retention;
  return factory;
}

MemoryOptions like(const StoreFactory& factory) {
  MemoryOptions options;
  options.audit_retention = factory.audit_retention;
  options.leases_on_wall_clock = factory.leases_on_wall_clock;
  return options;
}

}  // namespace einmal::testing
