#pragma once

#include <map>
#include <memory>
#include <vector>

#include "einmal/engine/engine.hpp"
#include "store_link.hpp"
#include "world.hpp"

namespace einmal::simulation {

/// A gateway process: the real engine on virtual time, and what a gateway does around it in as few
/// lines as can be. Killed, stopped, shut down and started again by the world.
class Gateway {
 public:
  Gateway(World& world, int number);
  ~Gateway();

  Timeline::Process process() const { return process_; }
  bool up() const { return engine_ != nullptr; }
  void start();
  void crash();
  void shut_down();
  /// Whether it could still send something for `operation`, or settle it.
  bool works_on(const Token& operation) const;

  void receive(const World::Origin& origin);
  void client_gone(const World::Origin& origin);

 private:
  class ProcessClock;
  class ProcessScheduler;
  class LedgerReconciler;

  struct Request {
    World::Origin origin;
    ScopeNumber scope = 0;
    int body = 0;
    std::optional<Engine::Ticket> ticket;
    std::unique_ptr<Execution> execution;
    Script script;
    bool answered = false;
    bool heard_upstream = false;
    bool marked = false;
  };

  void begin(RequestNumber number);
  void begun(RequestNumber number, Begun begun);
  void answer_begun(RequestNumber number, const Begun& begun);
  void send(RequestNumber number);
  void first_byte(RequestNumber number, Duration checked);
  void heard(RequestNumber number, const World::Reply& reply);
  void connection_broke(RequestNumber number);
  void give_back(RequestNumber number);
  void settle(RequestNumber number, const World::Reply& reply);
  void mark_uncertain(RequestNumber number);
  void finished(RequestNumber number, const Finished& finished, bool released,
                const std::string& content);
  void answer(RequestNumber number, Outcome outcome, const std::string& content = "");
  void done_with(RequestNumber number) { requests_.erase(number); }
  Request* find(RequestNumber number);

  World& world_;
  const int number_;
  const Timeline::Process process_;
  std::unique_ptr<ProcessClock> clock_;
  std::unique_ptr<ProcessScheduler> scheduler_;
  std::unique_ptr<SeededRandom> random_;
  std::unique_ptr<StoreLink> link_;
  std::unique_ptr<LedgerReconciler> reconciler_;
  std::unique_ptr<Engine> engine_;
  std::map<RequestNumber, Request> requests_;
  std::vector<std::unique_ptr<StoreLink>>
      links_of_the_dead_;  ///< What they sent is still on its way.
  std::uint64_t lives_ = 0;
};

}  // namespace einmal::simulation
