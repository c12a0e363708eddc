#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/base/ids.hpp"

/// The judge of a simulated history. It knows the law (the semantics page: guarantee, states,
/// events) and nothing of the code: it is built against einmal/base alone, so that neither
/// `core/decide` nor a store can be included here. What happens is told to it in plain words.

namespace einmal::simulation {

struct TokenTag {};
using Token = Id128<TokenTag>;

/// Scopes and requests of a history are numbers.
using ScopeNumber = int;
using RequestNumber = int;

/// One look at the store's clocks, and the simulation's own time, which nothing can set.
struct Clocks {
  Duration world{};
  Duration wall{};
  Duration boot{};
  int boot_number = 0;
};

enum class RecordState : std::uint8_t { absent, processing, completed, failed, uncertain, freed };

/// What a record promised when it was claimed.
struct Promises {
  std::optional<Duration> lease;
  bool takeover = false;
  Duration retention{};
  bool refuse = false;
  Duration tombstone{};
  friend bool operator==(const Promises&, const Promises&) = default;
};

/// A record as the store durably has it. Of an absent one nothing else is set.
struct Picture {
  RecordState state = RecordState::absent;
  std::uint64_t generation = 0;
  Token owner, operation;
  unsigned attempts = 0;
  int profile = 0, body = 0;  ///< The fingerprint: two bodies never have the same.
  Promises promises;
  std::optional<Duration> lease_end;  ///< On the boot clock...
  int lease_boot = 0;                 ///< ... of this boot.
  bool by_silence = false;  ///< Uncertain because the lease was over, not because somebody
                            ///< saw or said so.
  bool settled_by_owner = false;
  std::optional<Duration> expires;     ///< On the wall clock.
  std::optional<std::string> content;  ///< What a replay sends; while uncertain: evidence.
  friend bool operator==(const Picture&, const Picture&) = default;
};

enum class Asked : std::uint8_t {
  claim,
  renew,
  complete,
  fail,
  release,
  mark_uncertain,
  abandon,
  overdue,
  doubt,
  resolve,
  forget,
  sweep,
};

enum class Said : std::uint8_t {
  execute,
  replay,
  mismatch,
  other_profile,
  in_progress,
  uncertain,
  gone,
  ok,
  became_uncertain,
  lost,
  changed,
  unchanged,
};

/// One atomic step of the store, at the moment it became durable.
struct StoreStep {
  Clocks clocks;
  ScopeNumber scope = 0;

  Asked asked = Asked::claim;
  Token owner, operation;                ///< Claim and owner's events; claim.
  std::uint64_t generation = 0;          ///< All but claim, overdue, sweep.
  int profile = 0, body = 0;             ///< Claim.
  Promises promises;                     ///< Claim.
  int status = 0;                        ///< Complete, fail.
  bool declared = false;                 ///< Likewise.
  std::string content;                   ///< Complete, fail, resolve.
  RecordState to = RecordState::absent;  ///< Resolve.
  bool force = false;                    ///< Resolve.

  Said said = Said::unchanged;
  bool takeover = false, repeated = false;  ///< With execute.
  Picture carried;                          ///< The record in the answer.
  Picture before, after;
};

/// How a gateway answered a request.
enum class Outcome : std::uint8_t {
  success,     ///< Executed, replayed, resolved: the stored outcome, of status 2xx or not.
  unrecorded,  ///< The outcome, and the store could not write it.
  mismatch,
  in_progress,
  uncertain,
  unknown,  ///< 504 without a durable record of it: the store or the process failed.
  gone,
  released,          ///< The attempt it waited for had no effect.
  nothing_happened,  ///< This request certainly sent nothing downstream, or the upstream refused
                     ///< before it began: unreachable, unavailable, draining, incomparable ...
  ownership_lost,
};

std::string_view name(Outcome outcome);
std::string_view name(RecordState state);
std::string_view name(Asked asked);
std::string_view name(Said said);

struct Violation {
  std::string rule;
  std::string what;
};

class Auditor {
 public:
  /// `judges_steps` false: only the world is judged, effects and answers, as from outside.
  explicit Auditor(bool judges_steps = true) : judges_steps_(judges_steps) {}

  // --- what the store does

  void step(const StoreStep& step);
  /// The store looked at its clocks without changing anything.
  void looked(const Clocks& clocks);
  /// An operator vouched for the wall clock.
  void accepted_time(const Clocks& clocks);

  // --- what the world sees

  void arrived(RequestNumber request, ScopeNumber scope, int body, Duration world);
  /// The owner token of the claim that a request makes when it begins.
  void claims_as(RequestNumber request, const Token& owner);
  /// The process of that claimant heard that another attempt is in progress.
  void heard_in_progress(const Token& owner);
  /// An owner looked whether it may send (`checked`) and then did.
  void first_byte(ScopeNumber scope, std::uint64_t generation, Duration checked);
  /// The upstream acted. `content` names the outcome and is never given twice.
  void effect(ScopeNumber scope, int body, const Token& operation, std::uint64_t generation,
              RequestNumber request, const std::string& content, Duration world);
  /// The upstream refused, or an operator gave a result: an outcome without an effect.
  void outcome_made(ScopeNumber scope, int body, const std::string& content, Duration world);
  void answered(RequestNumber request, Outcome outcome, const std::string& content);
  /// An operator used force, or freed a key without knowing: the guarantee is void for the scope.
  void voided(ScopeNumber scope);
  /// A wall clock was set: what rests on comparing it with the world's time is not judged.
  void wall_clock_set() { wall_clock_set_ = true; }
  /// Everything is quiet, every gateway is gone or idle, sweepers have run.
  void end_of_history(const Clocks& clocks);

  // --- the verdict

  const std::optional<Violation>& violation() const { return violation_; }
  /// How often each row of the events table was taken.
  const std::map<std::string_view, std::uint64_t>& rows() const { return rows_; }
  /// Every row there is.
  static const std::vector<std::string_view>& all_rows();

 private:
  enum class Seen { absent, processing, settled, uncertain, tombstone };

  // The law of one step (auditor_law.cpp).
  void claim(const StoreStep& s);
  void claim_of_a_free_key(const StoreStep& s);
  void claim_of_a_processing_key(const StoreStep& s);
  void renew(const StoreStep& s);
  void settle(const StoreStep& s);
  void release(const StoreStep& s);
  void mark_uncertain(const StoreStep& s);
  void abandon(const StoreStep& s);
  void overdue(const StoreStep& s);
  void doubt(const StoreStep& s);
  void resolve(const StoreStep& s);
  void forget(const StoreStep& s);
  void sweep(const StoreStep& s);
  void lost(const StoreStep& s, std::string_view row);
  void changed(const StoreStep& s, std::string_view row);
  void unchanged(const StoreStep& s, std::string_view rule);
  void restarted(const StoreStep& s, std::string_view rule);
  void finally(const StoreStep& s, RecordState state, const std::string& content);
  void same_operation(const StoreStep& s);
  Seen seen(const Picture& p, const Clocks& c) const;
  bool over(const Picture& p, const Clocks& c) const;
  bool mine(const StoreStep& s) const;
  static bool lease_over(const Picture& p, const Clocks& c);

  // The world (auditor_world.cpp).
  void follow(const StoreStep& s);
  void judge_effects(ScopeNumber scope);
  template <class Holds>
  bool some_time(ScopeNumber scope, Duration from, Holds holds) const;

  void row(std::string_view name) { ++rows_[name]; }
  void expect(bool holds, std::string_view rule, std::string_view what, ScopeNumber scope);
  void law(bool holds, std::string_view rule, std::string_view what, ScopeNumber scope) {
    if (judges_steps_) expect(holds, rule, what, scope);
  }

  struct Piece {
    Duration since{};
    Picture picture;
  };
  enum class End { open, released, freed, freed_by_force, forgotten, expired };
  struct Operation {
    ScopeNumber scope = 0;
    bool takeover = false;  ///< Promised by its record.
    End end = End::open;
    std::map<std::uint64_t, Duration> granted;  ///< World time of each grant or renewal, last.
    std::optional<Duration> lease;
  };
  struct Effect {
    Token operation;
    std::uint64_t generation = 0;
    Duration world{};
  };
  struct Made {  ///< An outcome, before anybody settled by it.
    ScopeNumber scope = 0;
    int body = 0;
    Duration world{};
  };
  struct Scope {
    Picture now;
    std::vector<Piece> trace;
    std::uint64_t highest_generation = 0;
    std::vector<Effect> effects;
    bool void_ = false;
    std::optional<std::string> success;  ///< The outcome that was answered last.
    bool forgotten = false;
    std::optional<Duration> last_free;  ///< When an operation last ended without an outcome.
    Duration retention{};  ///< With the tombstone: how long the key is not executed again.
  };
  struct Request {
    ScopeNumber scope = 0;
    int body = 0;
    Duration arrived{};
    bool waits = false;
    bool had_effect = false;
    bool said_nothing_happened = false;
    bool answered = false;
  };

  const bool judges_steps_;
  std::map<ScopeNumber, Scope> scopes_;
  std::map<Token, Operation> operations_;
  std::unordered_map<RequestNumber, Request> requests_;
  std::map<Token, RequestNumber> claimants_;
  std::map<std::string, Made> outcomes_;
  std::optional<Clocks> last_look_;
  bool paused_ = false;
  bool wall_clock_set_ = false;
  std::map<std::string_view, std::uint64_t> rows_;
  std::optional<Violation> violation_;
};

}  // namespace einmal::simulation
