#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "auditor.hpp"
#include "durable_store.hpp"
#include "plan.hpp"
#include "timeline.hpp"

namespace einmal::simulation {

class Gateway;

/// A rule that is broken on purpose, so that the auditor can be seen to catch it. The default is
/// the product as it is.
struct Mutant {
  std::string name = "none";
  Decide decide = &einmal::decide;
  bool seen_from_outside = false;       ///< Effects and answers alone give it away.
  bool waiter_claims = false;           ///< A waiter that is told `released` claims.
  bool answers_before_durable = false;  ///< The client hears before the store wrote.
  bool sends_without_asking = false;    ///< The first byte goes out whatever became of the lease.
  bool frees_before_quiet = false;      ///< A reconciler frees what it does not find at once.

  friend std::ostream& operator<<(std::ostream& out, const Mutant& mutant) {
    return out << mutant.name;
  }
};

/// What the auditor looks at.
enum class Judged : std::uint8_t { everything, effects_and_answers };

/// What the upstream will do with one attempt.
enum class Act : std::uint8_t {
  commit,              ///< 201 and an effect
  refuse,              ///< 402, a business rejection: no effect
  refuse_declared,     ///< the same, and it says `failed` itself
  reject,              ///< says `released`: not begun
  unreachable,         ///< nothing can be sent
  crash_after_effect,  ///< 500 after an effect
  crash_before_effect,
  lose_answer,    ///< an effect, and the connection breaks
  lose_request,   ///< the connection breaks before anything happened
  garble_answer,  ///< an effect, and an answer nobody can read
  answer_late,    ///< an effect, answered long after the gateway gave up
};

struct Script {
  Act act = Act::commit;
  Duration think{};  ///< Between the claim and the first byte.
  Duration there{};  ///< On the way to the upstream...
  Duration back{};   ///< ... and back.
};

/// Everything outside the gateways: clients, network, upstream, operators; and what they share.
class World {
 public:
  World(const Plan& plan, const Mutant& mutant, Judged judged, bool trace);
  ~World();

  void play();

  // --- what gateways use

  Timeline timeline;
  Auditor auditor;
  DurableStore store;
  const Plan& plan;
  const Mutant& mutant;

  bool store_refuses() const { return timeline.now() < outage_until_; }
  bool store_stalls() const { return timeline.now() < stall_until_; }
  bool store_in_doubt() const { return timeline.now() < doubt_until_; }
  /// How long the answer to the next claim of a process is kept from it, then to be in doubt.
  Duration take_stranding(Timeline::Process process);

  struct Origin {  ///< Where a request came from.
    int intent = 0;
    int sending = 0;
  };
  RequestNumber new_request() { return next_request_++; }
  Script script_for(const Origin& origin);
  /// The upstream received the whole request of an attempt: acts, and answers through `answer`
  /// unless it does not. Returns nothing where no answer comes.
  struct Reply {
    int status = 0;
    std::string content;
    bool declared = false;
    bool released = false;
  };
  std::optional<Reply> upstream_acts(Act act, ScopeNumber scope, int body, const Record& claimed,
                                     RequestNumber request);
  /// What the upstream's ledger shows of an operation; nothing: no effect so far.
  std::optional<std::string> booked(const OperationId& operation) const;
  void message_leaves(const OperationId& operation) { ++in_flight_[token_of(operation)]; }
  void message_arrives(const OperationId& operation) { --in_flight_[token_of(operation)]; }
  /// A gateway's answer goes on its way to the client.
  void answer_to_client(const Origin& origin, Outcome outcome);

  void log(const std::string& line);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct Client {
    int sendings = 0;
    int waiting_for = -1;  ///< The sending it waits for; none: -1.
    int tries_left = 0;
    int repeats_left = 0;
  };

  void send(int intent);
  void retry(int intent, Duration after);
  void heard(int intent, int sending, Outcome outcome);
  void lose_patience(int intent, int sending, int gateway);

  void begin(const Fault& fault);
  void operate(const einmal::Request& request);
  void operator_resolves(ScopeNumber scope, bool force, SeededRandom chance);
  bool quiescent(const Token& operation) const;

  const Intent& intent(int number) const;
  std::string fresh(int status);

  std::vector<std::unique_ptr<Gateway>> gateways_;
  std::map<int, Client> clients_;
  RequestNumber next_request_ = 1;
  int next_content_ = 1;
  std::map<Token, std::string> ledger_;  ///< The last effect of each operation.
  std::map<Token, int> in_flight_;
  std::map<Timeline::Process, Duration> strandings_;
  Duration outage_until_{}, stall_until_{}, doubt_until_{}, network_until_{};
  const bool trace_;
  std::vector<std::string> lines_;
};

}  // namespace einmal::simulation
