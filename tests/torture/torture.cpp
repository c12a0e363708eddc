#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "einmal/base/random.hpp"
#include "einmal/testing/postgres_server.hpp"
#include "einmal/testing/tcp_gate.hpp"
#include "ledger.hpp"
#include "own_client.hpp"
#include "support/command.hpp"
#include "support/gateway.hpp"

/// Three gateway processes on one store, many clients, and everything that goes wrong at once:
/// kill -9, SIGSTOP, wall clocks that jump, a full disk (SQLite), a killed server and a network
/// that cuts, stalls and slices (PostgreSQL), an upstream that vanishes, releases, or takes longer
/// than the lease. Then a checker reads what the clients were told and what the upstream did.
///
/// The clients are of four kinds: patient (backs off, stays with one gateway), hasty (repeats at
/// once, and sends everything twice at the same time), wandering (any gateway, hangs up early), and
/// the project's own, with its journal.
///
///     einmal_torture --store sqlite|postgres [--seconds 40] [--seed N] [--upstream doubles]
///
/// With `--upstream doubles` the upstream books some requests twice: the checker must find it.
///
/// Exit status: 0 every promise was kept; 1 one was broken (named, with key and seed); 2 usage.

namespace einmal::test {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::seconds;

struct Options {
  bool postgres = false;
  bool upstream_doubles = false;
  int seconds = 40;
  std::uint64_t seed = 1;
};

/// One key as its client saw it.
struct History {
  std::optional<std::string> acknowledged;  ///< Body of a success that was recorded.
  std::optional<std::string> seen;          ///< The same, or one marked unrecorded.
  bool told_uncertain = false;
};

std::string faketime_library() {
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib")) {
    const auto library = entry.path() / "faketime" / "libfaketime.so.1";
    if (std::filesystem::exists(library)) return library.string();
  }
  throw std::runtime_error(
      "libfaketime is missing (tools/install-packages tools/packages/test.txt)");
}

class Torture {
 public:
  explicit Torture(const Options& options) : options_(options), chaos_(options.seed) {
    upstream_.always([this](const HttpRequest& request, std::size_t) { return serve(request); });
    std::string store = "sqlite:" + directory_.file("einmal.db");
    if (options.postgres) {
      server_.emplace(PostgresOptions{.fsync = false, .settings = {{"max_connections", "300"}}});
      const auto own = "postgresql:///postgres?host=" + server_->socket_folder() + "&user=postgres";
      const auto migrated = run_einmal({"migrate", "--store", own});
      if (migrated.status != 0) throw std::runtime_error(migrated.errors);
      gate_.emplace(server_->socket_path());
      store = "postgresql://postgres@127.0.0.1:" + std::to_string(gate_->port()) + "/postgres";
    }
    for (std::size_t i = 0; i < gateways_.size(); ++i) {
      GatewaySetup setup;
      setup.upstream = upstream_.url();
      setup.store = store;
      setup.limits = "uncertain_per_caller = 1000000\n";
      setup.defaults = "lease = \"2s\"\nstore_grace = \"900ms\"\nin_flight = \"" +
                       std::string(i % 2 == 0 ? "reject" : "wait") + "\"\nwait = \"500ms\"\n";
      gateways_[i] = std::make_unique<GatewayProcess>(directory_.path().string(), setup);
      set_clock(i, i == 0 ? 0 : i == 1 ? 3600 : -3600);
      start(i);
    }
  }

  bool run() {
    const auto end = Steady::now() + seconds(options_.seconds);
    std::vector<std::thread> clients;
    for (std::size_t t = 0; t < clients_; ++t)
      clients.emplace_back([this, t, end] { be_a_client(t, end); });
    while (Steady::now() < end) {
      pause(100, 500);
      misbehave();
    }
    for (auto& client : clients) client.join();
    over_ = true;
    calm();
    check();
    report();
    return broken_ == 0;
  }

 private:
  // --- The upstream.

  Play serve(const HttpRequest& request) {
    const auto key = request.header("Idempotency-Key");
    const auto hash = std::hash<std::string>{}(key), kind = hash % 20;
    if (kind == 1 && ledger_.is_first_release(key))
      return Play().answer(503, "busy", {{"Einmal-Outcome", "released"}});
    const auto body = ledger_.book(key);
    if (options_.upstream_doubles && kind == 2) ledger_.book(key);
    if (kind == 0) return Play().reset();
    Play play;
    if (hash % 100 == 3) play.take(Milliseconds(2500));  // Longer than the lease.
    return play.answer(201, body, {{"Location", "/orders/1"}});
  }

  // --- The clients.

  enum class Kind : std::uint8_t { patient, hasty, wandering, own };

  void be_a_client(std::size_t t, Steady::time_point end) {
    SeededRandom random(options_.seed * 1000 + t);
    const auto kind = static_cast<Kind>(t % 4);
    std::unique_ptr<OwnClient> own;
    if (kind == Kind::own) {
      own = std::make_unique<OwnClient>(
          directory_.file("journal" + std::to_string(t)), options_.seed * 1000 + t,
          [this, &random] { return ports_[random.below(ports_.size())].load(); });
    }
    for (int n = 0; Steady::now() < end; ++n) {
      const auto key = "c" + std::to_string(t) + "-" + std::to_string(n);
      History history;
      const int times = random.below(3) == 0 ? 2 : 1;
      for (int i = 0; i < times; ++i) {
        if (own) {
          order_until_known(*own, key, history, end + seconds(2));
        } else {
          send_until_known(kind, key, history, random, end + seconds(2));
        }
      }
      const std::lock_guard lock(mutex_);
      histories_.emplace(key, std::move(history));
    }
  }

  void send_until_known(Kind kind, const std::string& key, History& history, Random& random,
                        Steady::time_point end) {
    auto gateway = random.below(gateways_.size());
    for (int tries = 0; Steady::now() < end; ++tries) {
      std::future<std::optional<HttpAnswer>> twin;
      if (kind == Kind::hasty) {
        twin = std::async(std::launch::async, [this, &key, gateway] {
          return send_once(key, (gateway + 1) % gateways_.size(), false);
        });
      }
      const bool vanish = kind == Kind::wandering && random.below(6) == 0;
      const auto answer = send_once(key, gateway, vanish);
      bool known = answer && note(key, history, *answer);
      if (twin.valid()) {
        const auto other = twin.get();
        if (other) known = note(key, history, *other) || known;
      }
      if (known || (history.told_uncertain && tries > 3)) return;
      if (kind != Kind::patient || !answer) gateway = random.below(gateways_.size());
      wait(backoff(kind, tries, random));
    }
  }

  static Milliseconds backoff(Kind kind, int tries, Random& random) {
    if (kind == Kind::hasty) return Milliseconds(1);
    if (kind == Kind::wandering) return Milliseconds(10 + random.below(60));
    return Milliseconds(10 + random.below(std::uint64_t{20} << std::min(tries, 5)));
  }

  void order_until_known(OwnClient& own, const std::string& key, History& history,
                         Steady::time_point end) {
    for (int tries = 0; Steady::now() < end; ++tries) {
      const auto said = own.order(key, body_of(key));
      sent_ += static_cast<std::size_t>(said.attempts);
      {
        const std::lock_guard lock(mutex_);
        ++own_told_[in_words(said.verdict)];
      }
      if (const auto* answer = client::answer_of(said.verdict)) note(key, history, *answer);
      if (std::holds_alternative<client::verdict::Refused>(said.verdict))
        return broken(key, "its client was refused: " + in_words(said.verdict));
      if (std::holds_alternative<client::verdict::NotAttempted>(said.verdict) &&
          ledger_.effects(key) != 0)
        broken(key, "its client says that nothing was done, the upstream did it");
      if (client::is_settled(said.verdict)) return;
      if (client::why(said.verdict) == client::Why::uncertain && tries > 0) return;
    }
  }

  static std::string in_words(const client::Verdict& verdict) {
    const auto why = client::name(client::why(verdict));
    return std::string(client::name(verdict)) + (why.empty() ? "" : " ") + std::string(why);
  }

  static std::string body_of(const std::string& key) { return "{\"of\":\"" + key + "\"}"; }

  /// Nothing: no whole answer came.
  std::optional<HttpAnswer> send_once(const std::string& key, std::size_t gateway, bool vanish) {
    ++sent_;
    HttpRequest request;
    request.target = "/orders";
    request.body = body_of(key);
    request.headers = {{"Host", "shop.test"},
                       {"Content-Type", "application/json"},
                       {"X-Caller", "alice"},
                       {"Idempotency-Key", key}};
    try {
      const auto port = ports_[gateway].load();
      if (vanish) {
        RawClient client(port);
        client.send(request);
        client.reset();
        return std::nullopt;
      }
      auto answer = HttpClient(port).send(request);
      if (answer.is_whole()) return answer;
    } catch (const std::exception&) {  // Nobody listens there now.
    }
    ++unanswered_;
    return std::nullopt;
  }

  void note(const std::string& key, History& history, const client::Answer& answer) {
    HttpAnswer same;
    same.ended = Ended::whole;
    same.status = answer.status;
    same.headers = answer.headers;
    same.body = answer.body;
    note(key, history, same);
  }

  /// Whether the outcome is known now.
  bool note(const std::string& key, History& history, const HttpAnswer& answer) {
    const auto status = status_of(answer);
    {
      const std::lock_guard lock(mutex_);
      ++told_[test::in_words(answer)];
    }
    if (answer.status == 504 && status == "uncertain") history.told_uncertain = true;
    if (answer.status != 201) return false;
    const bool recorded = status == "executed" || status == "replayed";
    if (!recorded && status != "unrecorded") broken(key, "a success marked " + status);
    if (history.seen && *history.seen != answer.body)
      broken(key, "told " + *history.seen + ", then " + answer.body);
    history.seen = answer.body;
    if (recorded) history.acknowledged = answer.body;
    return recorded;
  }

  // --- What goes wrong.

  void pause(std::uint64_t least, std::uint64_t most) {
    wait(Milliseconds(least + chaos_.below(most - least)));
  }
  /// Lets so much time pass, unless the run is over.
  void wait(Milliseconds time) const {
    eventually([this] { return over_.load(); }, time);
  }

  std::string clock_file(std::size_t i) const {
    return directory_.file("clock" + std::to_string(i));
  }
  /// Its wall clock is so far from the true one, within a second or two; it may be running.
  void set_clock(std::size_t i, std::int64_t offset) {
    const auto next = clock_file(i) + ".next";
    std::ofstream(next) << (offset < 0 ? "" : "+") << offset << "\n";
    std::filesystem::rename(next, clock_file(i));
  }
  /// By minutes, hours or days, there and back; days are more than results are kept.
  void move_clock(std::size_t i) {
    constexpr std::array<std::int64_t, 3> most{10 * 60, 6 * 3600, 3 * 86400};
    const auto range = most[chaos_.below(most.size())];
    const auto to = static_cast<std::int64_t>(chaos_.below(2 * static_cast<std::uint64_t>(range)));
    set_clock(i, to - range);
  }

  void start(std::size_t i) {
    ChildProcess::Environment environment;
    if (i != 0) {
      environment = {{"LD_PRELOAD", faketime_library()},
                     {"FAKETIME_TIMESTAMP_FILE", clock_file(i)},
                     {"FAKETIME_CACHE_DURATION", "1"},
                     {"FAKETIME_DONT_FAKE_MONOTONIC", "1"}};
    }
    for (int tries = 0;; ++tries) {
      try {
        gateways_[i]->start(environment);
        ports_[i] = gateways_[i]->port();
        return;
      } catch (const std::exception&) {  // Its store is gone, too, just now.
        if (tries == 40) throw;
        pause(100, 300);
      }
    }
  }

  void restore_store() {
    if (!options_.postgres) return;
    gate_->stall(false);
    gate_->slice(0);
    gate_->refuse(false);
    if (!server_->running()) server_->start();
  }

  void misbehave() {
    const std::size_t i = chaos_.below(gateways_.size());
    if (chaos_.below(3) == 0) {
      ++done_["wall clocks moved while their gateway runs"];
      move_clock(1 + chaos_.below(2));
    }
    const auto what = chaos_.below(options_.postgres ? 9 : 6);
    if (what < 2) {
      ++done_["gateways killed by -9"];
      gateways_[i]->kill();
      restore_store();
      start(i);
    } else if (what < 4) {
      ++done_["gateways stopped and continued"];
      gateways_[i]->process().stop();
      pause(200, 3500);
      gateways_[i]->process().resume();
    } else if (!options_.postgres) {
      ++done_["gateways on a full disk"];
      gateways_[i]->kill();
      std::error_code ignored;
      const auto size = std::filesystem::file_size(directory_.file("einmal.db-wal"), ignored);
      gateways_[i]->limit_file_size(ignored ? 600 : static_cast<unsigned>(size / 1024) + 64);
      start(i);
      gateways_[i]->limit_file_size(0);
    } else if (what < 5) {
      ++done_["PostgreSQL killed by -9"];
      server_->kill();
      pause(100, 1500);
      server_->start();
    } else if (what < 6) {
      ++done_["connections cut"];
      gate_->cut();
    } else if (what < 7) {
      ++done_["network stalled"];
      gate_->stall(true);
      pause(200, 3000);
      gate_->stall(false);
    } else if (what < 8) {
      ++done_["network sliced"];
      gate_->slice(1 + chaos_.below(7));
      pause(200, 1000);
      gate_->slice(0);
    } else {
      ++done_["connections refused"];
      gate_->refuse(true);
      gate_->cut();
      pause(200, 1500);
      gate_->refuse(false);
    }
  }

  void calm() {
    restore_store();
    for (std::size_t i = 0; i < gateways_.size(); ++i) {
      gateways_[i]->kill();
      start(i);
    }
  }

  // --- The checker.

  void check() {
    std::vector<std::pair<std::string, History>> all(histories_.begin(), histories_.end());
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> checkers;
    for (int t = 0; t < 8; ++t) {
      checkers.emplace_back([&] {
        for (std::size_t n; (n = next++) < all.size();) check(all[n].first, all[n].second);
      });
    }
    for (auto& checker : checkers) checker.join();
    if (2 * uncertain_ > all.size()) broken("-", "more than half of all outcomes are uncertain");
    if (ledger_.keys_with_several() != 0) broken("-", "keys with several effects at the upstream");
  }

  void check(const std::string& key, const History& history) {
    HttpAnswer answer;
    const bool decided = eventually([&] {
      const auto sent = send_once(key, std::hash<std::string>{}(key) % gateways_.size(), false);
      if (!sent) return false;
      answer = *sent;
      return answer.status == 201 || answer.status == 504;
    });
    if (!decided) return broken(key, "wedged: " + test::in_words(answer));
    const auto effects = ledger_.effects(key);
    if (effects > 1) broken(key, std::to_string(effects) + " effects");
    if (history.acknowledged && (answer.status != 201 || answer.body != *history.acknowledged))
      broken(key,
             "was told " + *history.acknowledged + ", now " + test::in_words(answer) + answer.body);
    if (answer.status == 201 && history.seen && answer.body != *history.seen)
      broken(key, "was told " + *history.seen + ", now " + answer.body);
    if (answer.status == 201 && effects == 0) broken(key, "a success without an effect");
    ++(answer.status == 201 ? known_ : uncertain_);
  }

  void broken(const std::string& key, const std::string& what) {
    ++broken_;
    std::fprintf(stderr, "BROKEN, seed %llu, key %s: %s\n",
                 static_cast<unsigned long long>(options_.seed), key.c_str(), what.c_str());
  }

  void report() {
    std::printf("%s, %d s, seed %llu, 3 gateways, %zu clients\n",
                options_.postgres ? "PostgreSQL" : "SQLite", options_.seconds,
                static_cast<unsigned long long>(options_.seed), clients_);
    for (const auto& [what, count] : done_) std::printf("  %6zu %s\n", count, what.c_str());
    std::printf("  %6zu requests, of which %zu were not answered\n", sent_.load(),
                unanswered_.load());
    for (const auto& [words, count] : told_) std::printf("  %6zu told: %s\n", count, words.c_str());
    for (const auto& [words, count] : own_told_)
      std::printf("  %6zu told by einmal's own client: %s\n", count, words.c_str());
    std::printf("  %6zu keys, %zu effects: %zu known, %zu uncertain, %zu promises broken\n",
                histories_.size(), ledger_.all(), known_.load(), uncertain_.load(), broken_.load());
  }

  const Options options_;
  SeededRandom chaos_;
  TempDir directory_;
  ScriptedUpstream upstream_;
  std::optional<PostgresServer> server_;
  std::optional<TcpGate> gate_;
  std::array<std::unique_ptr<GatewayProcess>, 3> gateways_;
  std::array<std::atomic<std::uint16_t>, 3> ports_{};
  Ledger ledger_;
  const std::size_t clients_ = 12;
  std::mutex mutex_;
  std::map<std::string, History> histories_;
  std::map<std::string, std::size_t> told_, own_told_, done_;
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> sent_{0}, unanswered_{0}, known_{0}, uncertain_{0}, broken_{0};
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--store" && (value == "sqlite" || value == "postgres")) {
      options.postgres = value == "postgres";
    } else if (name == "--upstream" && value == "doubles") {
      options.upstream_doubles = true;
    } else if (name == "--seconds") {
      options.seconds = std::atoi(value.c_str());
    } else if (name == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      return std::nullopt;
    }
  }
  return argc % 2 == 1 && options.seconds > 0 ? std::optional(options) : std::nullopt;
}

}  // namespace
}  // namespace einmal::test

int main(int argc, char** argv) {
  using namespace einmal::test;
  const auto options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "einmal_torture --store sqlite|postgres [--seconds 40] [--seed N] "
                 "[--upstream doubles]\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return Torture(*options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "einmal_torture: %s\n", error.what());
    return 1;
  }
}
