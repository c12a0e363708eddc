#include "einmal/testing/random_commands.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "einmal/testing/describe.hpp"
#include "einmal/testing/memory_home.hpp"

namespace einmal::testing {

namespace {

/// Draws lines. Durations are the ones of the script's claims, and their neighbours.
class Lines {
 public:
  Lines(std::uint64_t seed, const StoreFactory& factory) : random_(seed), factory_(factory) {}

  std::string next() {
    const std::uint64_t dice = random_.below(100);
    if (dice < 32) return claim();
    if (dice < 64) return by_owner();
    if (dice < 76) return by_operator();
    if (dice < 88) return time();
    return look();
  }

 private:
  using Choices = std::vector<std::string>;

  std::string pick(const Choices& choices) { return choices[random_.below(choices.size())]; }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  std::string key() { return pick({"k1", "k2", "k3"}); }
  std::string owner() { return pick({"a", "b", "c", "d"}); }

  std::string claim() {
    std::string line = "claim " + key() + " " + owner();
    if (one_in(8)) line += " body=2";
    if (one_in(12)) line += " profile=2";
    if (one_in(2)) line += " takeover";
    if (one_in(6)) line += " lease=none";
    if (one_in(4)) line += " lease=20s";
    if (one_in(3)) line += " refuse=2h";
    if (one_in(4)) line += " retention=30m";
    return line;
  }

  std::string by_owner() {
    const std::string whose = " " + key() + " " + owner();
    switch (random_.below(8)) {
      case 0:
      case 1:
        return "complete" + whose + " " + pick({"200", "201", "303"});
      case 2:
        return "fail" + whose + " " + pick({"402", "404", "500"});
      case 3:
        return "fail" + whose + " 402 declared";
      case 4:
        return "complete" + whose + " 201 resource=" + pick({"order-1", "order-2"});
      case 5:
        return "release" + whose;
      case 6:
        return "mark" + whose + pick({"", " seen=502"});
      default:
        return pick({"renew", "renew", "abandon"}) + whose;
    }
  }

  std::string by_operator() {
    const std::string stale = one_in(6) ? " stale" : "";
    switch (random_.below(8)) {
      case 0:
        return "doubt " + key() + stale;
      case 1:
        return "forget " + key() + stale;
      case 2:
        return "overdue";
      case 3:
        return "sweep";
      case 4:
        return one_in(10) ? "advance-generations" : "sweep";
      default:
        return "resolve " + key() + " " + pick({"completed", "failed", "freed", "freed"}) +
               (one_in(4) ? " force" : "") + (one_in(2) ? " reconciler" : "") + stale;
    }
  }

  std::string time() {
    if (one_in(12)) return "jump " + pick({"-1us", "-10s", "-2h", "30s"});
    if (factory_.guards_wall_clock && one_in(16)) return "jump " + pick({"2h", "61s", "5h"});
    if (factory_.guards_wall_clock && one_in(8)) return "accept-time";
    if (one_in(16)) return "reboot";
    return "wait " + pick({"1us", "5s", "10s", "20s", "30s", "15m", "30m", "1h", "2h", "9h"});
  }

  std::string look() {
    const std::string line =
        pick({"read", "read", "operation", "audit", "list", "stats", "live", "count", "profile"});
    if (line == "profile") return line + " " + pick({"1", "2"});
    if (line == "read" || line == "operation" || line == "audit") return line + " " + key();
    return line;
  }

  SeededRandom random_;
  const StoreFactory& factory_;
};

/// A fresh store and its script.
class Side {
 public:
  Side(const StoreFactory& factory, VirtualClock& clock)
      : home_(factory.make(clock)), store_(home_->open()), script_(*store_) {}

  void reopen() {
    store_.reset();
    store_ = home_->open();
    script_.use(*store_);
  }
  std::string run(const std::string& line) { return describe(script_.run(line)); }

 private:
  std::unique_ptr<StoreHome> home_;
  std::unique_ptr<Store> store_;
  StoreScript script_;
};

/// The number of the first line that is answered otherwise, and both answers.
struct Difference {
  std::size_t at = 0;
  std::string tested, memory;
};

std::optional<Difference> first_difference(const StoreFactory& factory,
                                           const std::vector<std::string>& lines) {
  VirtualClock clock;
  Side tested(factory, clock);
  Side memory(memory_factory(like(factory)), clock);
  for (std::size_t at = 0; at < lines.size(); ++at) {
    std::istringstream words(lines[at]);
    std::string verb, argument;
    words >> verb >> argument;
    if (verb == "wait") {
      clock.advance(duration_of(argument));
    } else if (verb == "jump") {
      clock.jump_wall(duration_of(argument));
    } else if (verb == "reboot") {
      clock.reboot();
      tested.reopen();
      memory.reopen();
    } else {
      std::string a = tested.run(lines[at]);
      std::string b = memory.run(lines[at]);
      if (a != b) return Difference{at, std::move(a), std::move(b)};
    }
  }
  return std::nullopt;
}

/// Leaves out every line without which a difference still shows.
std::vector<std::string> shrunk(const StoreFactory& factory, std::vector<std::string> lines) {
  for (std::size_t chunk = lines.size() / 2; chunk > 0; chunk /= 2) {
    for (std::size_t at = 0; at + chunk < lines.size();) {
      std::vector<std::string> fewer = lines;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                  fewer.begin() + static_cast<std::ptrdiff_t>(at + chunk));
      if (const auto found = first_difference(factory, fewer)) {
        fewer.resize(found->at + 1);
        lines = std::move(fewer);
      } else {
        at += chunk;
      }
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> random_lines(std::uint64_t seed, std::size_t count,
                                      const StoreFactory& factory) {
  Lines draw(seed, factory);
  std::vector<std::string> lines;
  while (lines.size() < count) lines.push_back(draw.next());
  return lines;
}

std::optional<std::string> difference_from_memory(const StoreFactory& factory,
                                                  const std::vector<std::string>& lines) {
  auto found = first_difference(factory, lines);
  if (!found) return std::nullopt;
  std::vector<std::string> fewer(lines.begin(),
                                 lines.begin() + static_cast<std::ptrdiff_t>(found->at) + 1);
  fewer = shrunk(factory, std::move(fewer));
  if (auto again = first_difference(factory, fewer)) found = std::move(again);
  std::string story;
  for (const std::string& line : fewer) story += "  " + line + "\n";
  return "after these lines\n" + story + "the store answers\n  " + found->tested +
         "\nand the memory store\n  " + found->memory + "\n";
}

std::uint64_t seed_or(std::uint64_t seed) {
  const char* given = std::getenv("EINMAL_SEED");
  return given ? std::strtoull(given, nullptr, 10) : seed;
}

namespace {

TEST_P(RandomCommands, AreAnsweredAsTheMemoryStoreAnswersThem) {
  const std::size_t sequences = 20, length = 250;
  const std::uint64_t first = seed_or(1);
  for (std::uint64_t seed = first; seed < first + sequences; ++seed) {
    const auto difference =
        difference_from_memory(GetParam(), random_lines(seed, length, GetParam()));
    ASSERT_FALSE(difference) << "EINMAL_SEED=" << seed << "\n" << *difference;
  }
}

}  // namespace
}  // namespace einmal::testing
