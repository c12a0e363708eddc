#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/store/store.hpp"

/// The load of the store benchmarks: callers that claim and complete new keys.
namespace einmal::bench {

inline const std::string response_headers =
    "Content-Type: application/json\r\nLocation: /orders/4711\r\nX-Request-Cost: 12\r\n";
inline const std::string response_body(200, 'b');

inline Scope scope_of(std::uint64_t number) {
  char key[40];
  std::snprintf(key, sizeof key, "8e03978e-40d5-43e8-bc93-%012llx",
                static_cast<unsigned long long>(number));
  return *Scope::make("gateway", "merchant-" + std::to_string(number % 100), "create-order", key);
}

inline event::Claim claim_of(Random& random) {
  event::Claim claim;
  claim.fingerprint.digest[0] = 1;
  claim.policies.lease = std::chrono::seconds(30);
  claim.owner = OwnerToken::draw(random);
  claim.operation_id = OperationId::draw(random);
  return claim;
}

/// Callers that each claim and complete new keys, one pair after another, on the threads of the
/// store. Ends the program when a pair is not executed and settled.
class Callers {
 public:
  /// Keys are numbered from `first` on.
  Callers(Store& store, std::size_t count, std::uint64_t first = 0) : store_(store), next_(first) {
    for (std::size_t i = 0; i < count; ++i)
      callers_.push_back(std::make_unique<Caller>(*this, first + i + 1));
  }

  /// All callers together do `pairs` pairs, without waiting for each other.
  void run(std::size_t pairs) {
    left_ = static_cast<std::int64_t>(pairs) - static_cast<std::int64_t>(callers_.size());
    round();
  }

  /// Pairs for so long; returns how many a second were done.
  double rate(std::chrono::duration<double> length) {
    using Pace = std::chrono::steady_clock;
    const auto begun = Pace::now();
    constexpr std::int64_t many = std::int64_t{1} << 60;
    left_ = many;
    start();
    std::unique_lock lock(mutex_);
    done_.wait_until(lock, begun + std::chrono::duration_cast<Pace::duration>(length),
                     [this] { return running_ == 0; });
    const std::int64_t before_the_last = many - left_.exchange(0);
    done_.wait(lock, [this] { return running_ == 0; });
    const std::chrono::duration<double> took = Pace::now() - begun;
    return static_cast<double>(before_the_last + static_cast<std::int64_t>(callers_.size())) /
           took.count();
  }

 private:
  class Caller {
   public:
    Caller(Callers& all, std::uint64_t seed)
        : all_(all), random_(seed), claim_(*this), settle_(*this) {}
    void begin(std::uint64_t number) {
      auto& t = std::get<request::Transition>(claim_.request());
      t.scope = scope_of(number);
      t.event = claim_of(random_);
      all_.store_.submit(claim_);
    }

   private:
    struct Claiming final : Command {
      explicit Claiming(Caller& caller)
          : Command(request::Transition{scope_of(0), event::Claim{}, nullptr, {}}),
            caller_(caller) {}
      void completed(Result<Answer> answer) noexcept override {
        caller_.claimed(std::move(answer));
      }
      Caller& caller_;
    };
    struct Settling final : Command {
      explicit Settling(Caller& caller)
          : Command(request::Transition{scope_of(0), event::Settle{}, nullptr, {}}),
            caller_(caller) {}
      void completed(Result<Answer> answer) noexcept override {
        caller_.settled(std::move(answer));
      }
      Caller& caller_;
    };

    void claimed(Result<Answer> answer) {
      auto& execute = std::get<decision::Execute>(std::get<Decision>(checked(answer)));
      auto& t = std::get<request::Transition>(settle_.request());
      t.scope = std::get<request::Transition>(claim_.request()).scope;
      event::Settle settle;
      settle.generation = execute.record.generation;
      settle.owner = execute.record.owner;
      settle.result.status = 201;
      settle.result.headers = response_headers;
      settle.result.body = response_body;
      t.event = std::move(settle);
      all_.store_.submit(settle_);
    }
    void settled(Result<Answer> answer) {
      if (!std::holds_alternative<decision::Ok>(std::get<Decision>(checked(answer)))) std::abort();
      if (all_.left_.fetch_sub(1) > 0) return begin(all_.next_++);
      const std::lock_guard lock(all_.mutex_);
      if (--all_.running_ == 0) all_.done_.notify_one();
    }
    static Answer& checked(Result<Answer>& answer) {
      if (answer) return *answer;
      std::fprintf(stderr, "%s\n", answer.error().message.c_str());
      std::abort();
    }
    Callers& all_;
    SeededRandom random_;
    Claiming claim_;
    Settling settle_;
  };

  void start() {
    running_ = callers_.size();
    for (auto& caller : callers_) caller->begin(next_++);
  }
  void round() {
    start();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }

  Store& store_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::atomic<std::uint64_t> next_;
  std::atomic<std::int64_t> left_{0};
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t running_ = 0;
};

}  // namespace einmal::bench
