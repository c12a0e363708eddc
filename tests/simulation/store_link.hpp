#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "world.hpp"

namespace einmal::simulation {

/// One process's way to the durable store: takes time, fails, leaves in doubt. A command becomes
/// durable at one moment on the way; where the store lives in the process, a kill before that
/// moment loses it, and a stop delays it.
class StoreLink final : public Store {
 public:
  StoreLink(World& world, Timeline::Process process, std::uint64_t life);
  ~StoreLink() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  void submit(Command& command) override;
  const Bytes& digest_secret() const override { return secret_; }
  void on_foreign_change(std::function<void()>) override {}
  void await_foreign_changes(bool) override {}

  /// Claims that are submitted from now on belong to `request`; nothing: to nobody known.
  void on_behalf_of(std::optional<RequestNumber> request) { request_ = request; }
  /// The process is dead and its engine gone: what is on its way is answered to nobody.
  void process_died();

 private:
  struct Call;

  void apply(const std::shared_ptr<Call>& call);
  void deliver(const std::shared_ptr<Call>& call);

  World& world_;
  const Timeline::Process process_;
  SeededRandom chance_;
  Capabilities capabilities_;
  Bytes secret_ = Bytes(32, 's');
  std::optional<RequestNumber> request_;
  std::list<std::shared_ptr<Call>> calls_;
};

}  // namespace einmal::simulation
