#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "einmal/store/store.hpp"

namespace einmal::testing {

/// What goes wrong with a command on its way to a store or back.
enum class Fault : std::uint8_t {
  refused,        ///< Not done, and the answer says so: unavailable.
  doubt_undone,   ///< Not done; the answer says in_doubt.
  doubt_done,     ///< Done; the answer says in_doubt.
  stalled,        ///< Not done and not answered until `resume`; then done and answered.
  stalled_after,  ///< Done; the answer is kept back until `resume`.
};

/// A store with faults on request, in front of another one. One thread, except that the inner store
/// may answer from its own.
class FaultStore final : public Store {
 public:
  using Matches = std::function<bool(const Request&)>;

  explicit FaultStore(Store& inner) : inner_(inner) {}
  ~FaultStore() override;

  /// The next `times` commands that match meet `fault`. Rules apply in the order given, one at a
  /// time for each command. `forever` for `times` until `heal`.
  static constexpr std::size_t forever = static_cast<std::size_t>(-1);
  void inject(Fault fault, Matches matches, std::size_t times = 1);
  /// No more faults; what stalls goes on stalling.
  void heal() { rules_.clear(); }
  /// What stalled goes on, in its order.
  void resume();
  std::size_t stalled() const { return waiting_.size(); }

  /// How many commands came that match.
  std::size_t count(const Matches& matches) const;
  void forget_counts() { seen_.clear(); }

  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  void submit(Command& command) override;
  const Bytes& digest_secret() const override { return inner_.digest_secret(); }
  void on_foreign_change(std::function<void()> listener) override {
    inner_.on_foreign_change(std::move(listener));
  }
  void await_foreign_changes(bool wanted) override { inner_.await_foreign_changes(wanted); }
  void observe(StoreObserver* observer) override { inner_.observe(observer); }

 private:
  class Relay;
  struct Rule {
    Fault fault;
    Matches matches;
    std::size_t times;
  };

  void pass_on(Command& command, bool answer_in_doubt);

  Store& inner_;
  std::list<Rule> rules_;
  std::vector<Request> seen_;
  std::vector<std::function<void()>> waiting_;
};

/// Matches a Transition with that event.
template <class Event>
bool is_event(const Request& request) {
  const auto* transition = std::get_if<request::Transition>(&request);
  return transition && std::holds_alternative<Event>(transition->event);
}
/// Matches a request of that kind.
template <class Kind>
bool is_request(const Request& request) {
  return std::holds_alternative<Kind>(request);
}
inline bool is_any(const Request&) { return true; }

}  // namespace einmal::testing
