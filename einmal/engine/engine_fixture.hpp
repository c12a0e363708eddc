#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "einmal/engine/engine.hpp"
#include "einmal/store/memory.hpp"
#include "einmal/testing/fault_store.hpp"
#include "einmal/testing/virtual_clock.hpp"
#include "einmal/testing/virtual_scheduler.hpp"

namespace einmal {

using testing::Fault;
using testing::FaultStore;
using testing::is_event;
using testing::is_request;
using namespace std::chrono_literals;

/// A request body under a profile, both named by text.
class TextFingerprint final : public FingerprintSource {
 public:
  TextFingerprint(std::string body, std::string profile, std::vector<std::string> known)
      : body_(std::move(body)), profile_(std::move(profile)), known_(std::move(known)) {}

  std::shared_ptr<const Profile> profile() const override {
    return std::make_shared<const Profile>(Profile{digest(profile_), profile_});
  }
  Fingerprint fingerprint() const override { return {digest(profile_), digest(profile_ + body_)}; }
  std::optional<Digest> digest_under(const Profile& profile) const override {
    for (const std::string& known : known_) {
      if (known == profile.definition) return digest(known + body_);
    }
    return std::nullopt;
  }

 private:
  static Digest digest(const std::string& text) {
    Digest out{};
    for (std::size_t i = 0; i < text.size(); ++i) {
      out[i % out.size()] = static_cast<std::uint8_t>(out[i % out.size()] * 31 + text[i]);
    }
    return out;
  }
  std::string body_, profile_;
  std::vector<std::string> known_;
};

/// Everything that was observed, as lines.
class RecordingObserver final : public Observer {
 public:
  void reached(Point point, const Scope&, Generation) override { points.emplace_back(name(point)); }
  void begun(const BeginReport& report) override {
    add("begun " + std::string(name(report.outcome)) + (report.takeover ? " takeover" : "") +
        (report.resolved ? " resolved" : "") + (report.entered ? " entered" : "") +
        (report.waited ? " waited" : ""));
    last_took = report.took;
    last_waited = report.waited;
  }
  void wait_started(const Scope&) override { add("wait_started"); }
  void finished(const FinishReport& report) override {
    add("finished " + std::string(name(report.asked)) + " " + std::string(name(report.outcome)) +
        (report.late ? " late" : "") + (report.background ? " background" : ""));
  }
  void renewed(const Scope&, Generation, Renewal renewal) override {
    add("renewed " + std::string(name(renewal)));
  }
  void ownership_lost(const Scope&, Generation) override { add("ownership_lost"); }
  void late_result(const Scope&, Generation, bool contradicts) override {
    add(contradicts ? "late_result contradicts" : "late_result");
  }
  void reconciled(const Scope&, Generation, Reconciled what) override {
    add("reconciled " + std::string(name(what)));
  }
  void overdue(std::size_t count) override { add("overdue " + std::to_string(count)); }
  void swept(std::size_t removed, std::size_t stripped) override {
    add("swept " + std::to_string(removed) + " " + std::to_string(stripped));
  }
  void measured(const answer::Stats& stats) override {
    add("measured " + std::to_string(stats.processing.records));
  }
  void alarm(Alarm alarm, std::string_view) override { add("alarm " + std::string(name(alarm))); }

  int count(const std::string& line) const {
    return static_cast<int>(std::count(lines.begin(), lines.end(), line));
  }

  std::vector<std::string> lines;
  std::vector<std::string> points;
  Duration last_took{};
  std::optional<Duration> last_waited;

 private:
  void add(std::string line) { lines.push_back(std::move(line)); }
};

/// One `begin` and what became of it.
struct Asked {
  Engine::Ticket ticket{};
  int answers = 0;
  std::optional<Begun> begun;
  std::optional<Finished> finished;
  int finishes = 0;

  Execution& execution() { return *std::get<begun::Execute>(*begun).execution; }
  template <class T>
  const T& as() const {
    return std::get<T>(*begun);
  }
  void settle(int status = 201, std::string body = "done", bool declared = false) {
    StoredResult result;
    result.status = status;
    result.body = std::move(body);
    const auto outcome = status < 400 ? event::Final::completed : event::Final::failed;
    execution().settle(outcome, std::move(result), declared, finish());
  }
  void release() { execution().release(finish()); }
  void mark_uncertain() {
    execution().mark_uncertain(UncertainCause::outcome_unknown, std::nullopt, finish());
  }
  void give_up_execution() { std::get<begun::Execute>(*begun).execution.reset(); }

 private:
  std::function<void(Finished)> finish() {
    return [this](Finished answer) {
      ++finishes;
      finished = std::move(answer);
    };
  }
};

/// The name of an answer; "nothing" while there is none.
inline std::string what(const Asked& asked) {
  static constexpr const char* names[] = {
      "execute",  "replay",           "mismatch",     "in_progress", "uncertain", "gone",
      "released", "too_many_waiters", "incomparable", "over_quota",  "draining",  "unavailable"};
  return asked.begun ? names[asked.begun->index()] : "nothing";
}
inline std::string how(const Asked& asked) {
  static constexpr const char* names[] = {"recorded", "became_uncertain", "lost", "unrecorded"};
  return asked.finished ? names[asked.finished->index()] : "nothing";
}

struct Asking {
  std::string body = "body";
  InFlight in_flight = InFlight::reject;
  Duration wait = 5s;
  std::optional<Duration> lease = 30s;
  OnLeaseExpiry on_lease_expiry = OnLeaseExpiry::uncertain;
  Duration retention = 24h;
  AfterExpiry after_expiry = AfterExpiry::claim_anew;
  Duration store_grace = 5s;
  std::string caller = "alice";
  std::string profile = "v1";
  std::vector<std::string> known_profiles = {"v1", "v2"};
};

/// One engine, or several as if in several processes, on one memory store behind faults, in virtual
/// time.
class EngineTest : public ::testing::Test {
 protected:
  struct Process {
    Process(EngineTest& test, EngineLimits its_limits)
        : faults(test.store),
          engine(std::in_place, faults, test.scheduler, test.clock, test.random,
                 test.told_instead ? *test.told_instead : observer, its_limits) {}
    FaultStore faults;
    RecordingObserver observer;
    std::optional<Engine> engine;
    void crash() { engine.reset(); }
  };

  void TearDown() override {
    for (auto& asked : asked_) asked.begun.reset();
    for (auto& process : processes_) process.crash();
    scheduler.run_ready();
    for (auto& process : processes_) process.faults.resume();
  }

  Process& start(EngineLimits its_limits = {}) {
    return processes_.emplace_back(*this, its_limits);
  }
  /// The first process; started when first used.
  Process& process() { return processes_.empty() ? start(limits) : processes_.front(); }
  Engine& engine() { return *process().engine; }
  FaultStore& faults() { return process().faults; }
  RecordingObserver& observer() { return process().observer; }

  static Scope scope(const std::string& key, const Asking& asking = {}) {
    return *Scope::make("gateway", asking.caller, "create-order", key);
  }
  static BeginRequest request(const std::string& key, const Asking& asking = {}) {
    Policies policies;
    policies.lease = asking.lease;
    policies.on_lease_expiry = asking.on_lease_expiry;
    policies.retention = asking.retention;
    policies.after_expiry = asking.after_expiry;
    return {scope(key, asking),
            policies,
            asking.in_flight,
            asking.wait,
            asking.store_grace,
            std::make_shared<TextFingerprint>(asking.body, asking.profile, asking.known_profiles)};
  }

  /// Begins without letting anything run.
  Asked& begin(Process& in, const std::string& key, const Asking& asking = {}) {
    Asked& asked = asked_.emplace_back();
    asked.ticket = in.engine->begin(request(key, asking), [&asked](Begun answer) {
      ++asked.answers;
      asked.begun = std::move(answer);
    });
    return asked;
  }
  /// Begins and runs what is ready.
  Asked& ask(Process& in, const std::string& key, const Asking& asking = {}) {
    Asked& asked = begin(in, key, asking);
    scheduler.run_ready();
    return asked;
  }
  Asked& ask(const std::string& key, const Asking& asking = {}) {
    return ask(process(), key, asking);
  }
  static Asking waiting(Duration wait = 5s) {
    Asking asking;
    asking.in_flight = InFlight::wait;
    asking.wait = wait;
    return asking;
  }

  /// The record as the store has it, faults or not.
  std::optional<StoredRecord> stored(const std::string& key, const Asking& asking = {}) {
    auto answer = einmal::ask(store, request::ReadScope{scope(key, asking), true});
    return std::get<answer::Found>(*answer).record;
  }
  Condition condition(const std::string& key) {
    const auto found = stored(key);
    return found ? found->condition : Condition::absent;
  }
  Decision operate(const std::string& key, Event event) {
    return *ask_transition(store, {scope(key), std::move(event), nullptr, {"operator", "saw it"}});
  }

  testing::VirtualClock clock;
  testing::VirtualScheduler scheduler{clock};
  SeededRandom random{20240601};
  MemoryStore store{clock, random};
  EngineLimits limits;
  Observer* told_instead = nullptr;  ///< Of the observers of the processes started from now on.

 private:
  std::deque<Process> processes_;
  std::deque<Asked> asked_;
};

}  // namespace einmal
