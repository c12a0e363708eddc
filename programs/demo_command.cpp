#include <fmt/color.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "child.hpp"
#include "commands.hpp"
#include "http_call.hpp"

namespace einmal::programs {

namespace {

using Clock = std::chrono::steady_clock;

/// Prints the tour: steps, what was sent, what came, and whether the promise held.
class Narrator {
 public:
  explicit Narrator(bool colours) : colours_(colours) {}

  void title(std::string_view text) { fmt::print("\n  {}\n", paint(text, fmt::emphasis::bold)); }
  void fact(std::string_view name, std::string_view text) {
    fmt::print("  {}  {}\n", faint(fmt::format("{:<8}", name)), text);
  }
  void step(std::string_view heading, std::string_view why) {
    ++steps_;
    fmt::print("\n{}  {}\n",
               paint(fmt::format("{:>2}", steps_), fmt::fg(fmt::terminal_color::cyan)),
               paint(heading, fmt::emphasis::bold));
    fmt::print("    {}\n", faint(why));
    std::fflush(stdout);
  }
  void sent(std::string_view text) { fmt::print("    {} {}\n", faint("->"), text); }
  void came(std::string_view text) { fmt::print("    {} {}\n", faint("<-"), text); }
  void note(std::string_view text) { fmt::print("       {}\n", faint(text)); }
  /// A promise of this step, and whether it held.
  void promise(bool held, std::string_view text) {
    ++promises_;
    if (!held) ++broken_;
    const auto colour = held ? fmt::terminal_color::green : fmt::terminal_color::red;
    fmt::print("    {} {}\n", paint(held ? "ok" : "NO", fmt::fg(colour) | fmt::emphasis::bold),
               text);
    std::fflush(stdout);
  }
  int broken() const { return broken_; }
  int promises() const { return promises_; }

 private:
  std::string paint(std::string_view text, const fmt::text_style& style) const {
    return colours_ ? fmt::format(style, "{}", text) : std::string(text);
  }
  std::string faint(std::string_view text) const { return paint(text, fmt::emphasis::faint); }

  bool colours_;
  int steps_ = 0, promises_ = 0, broken_ = 0;
};

/// A fresh directory that goes with the demo.
class Workplace {
 public:
  Workplace() {
    auto name = (std::filesystem::temp_directory_path() / "einmal-demo-XXXXXX").string();
    if (::mkdtemp(name.data())) path_ = name;
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  bool exists() const { return !path_.empty(); }
  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

constexpr std::string_view coffee = R"({"item":"coffee","amount":300})";
constexpr std::string_view more_coffee = R"({"item":"coffee","amount":30000})";

/// The value of a member of a flat JSON object: what the demo's own two servers send.
std::string member(const std::string& json, const std::string& name) {
  const auto at = json.find("\"" + name + "\"");
  if (at == std::string::npos) return {};
  const auto start = json.find_first_not_of(" :", at + name.size() + 2);
  if (start == std::string::npos) return {};
  if (json[start] == '"') return json.substr(start + 1, json.find('"', start + 1) - start - 1);
  return json.substr(start, json.find_first_of(",}\n", start) - start);
}

std::string in_words(const HttpResult& result) {
  if (result.status == 0) return "no answer: " + result.problem;
  std::string words = std::to_string(result.status);
  if (const auto status = result.header("Idempotency-Status"); !status.empty())
    words += " " + status;
  if (const auto reason = member(result.body, "reason"); !reason.empty())
    return words + "  " + reason;
  if (const auto id = member(result.body, "id"); !id.empty()) return words + "  order " + id;
  return words;
}

class Demo {
 public:
  explicit Demo(Narrator& say) : say_(say) {}
  /// 0, or 1 when a promise was broken or something could not be started.
  int run();

 private:
  bool start();
  bool start_gateway(const std::string& listen);
  int settle(const std::string& key, const std::string& body);
  HttpResult post(const std::string& base, std::string_view key, std::string_view body,
                  std::vector<std::string> headers = {}) const;
  HttpResult order(std::string_view key, std::string_view body = coffee,
                   std::vector<std::string> headers = {}) const {
    return post(gateway_->url(), key, body, std::move(headers));
  }
  std::size_t booked(const std::string& key) const;
  void promise_booked(const std::string& key, std::size_t times);
  bool wait_until(const std::function<bool()>& seen) const;

  void without_einmal();
  void first_and_replay();
  void other_body();
  void twenty_at_once();
  void lost_answer();
  void settled_by_hand();
  void killed_gateway();

  Narrator& say_;
  Workplace work_;
  std::optional<Child> shop_, gateway_;
  HttpResult first_;
};

bool Demo::start() {
  if (!work_.exists()) {
    fmt::print(stderr, "einmal demo: no directory for temporary files; set TMPDIR\n");
    return false;
  }
  auto shop = Child::start({"shop", "--listen", "127.0.0.1:0", "--ledger", work_.file("ledger.db")},
                           work_.file("log"));
  if (!shop) {
    fmt::print(stderr, "einmal demo: {}\n", shop.error().message);
    return false;
  }
  shop_ = std::move(*shop);
  return start_gateway("127.0.0.1:0");
}

bool Demo::start_gateway(const std::string& listen) {
  std::ofstream(work_.file("einmal.toml"))
      << "[gateway]\nlisten = \"" << listen << "\"\nupstream = \"" << shop_->url()
      << "\"\n[store]\nurl = \"sqlite:" << work_.file("einmal.db")
      << "\"\n[caller]\nsource = \"fixed:demo\"\n[limits]\nwaiters_per_key = 32\n[[operation]]\n"
         "name = \"create-order\"\nmatch = \"POST /orders\"\nin_flight = \"wait\"\nlease = "
         "\"2s\"\n";
  auto gateway =
      Child::start({"gateway", "--config", work_.file("einmal.toml")}, work_.file("log"));
  if (!gateway) {
    fmt::print(stderr, "einmal demo: {}\n", gateway.error().message);
    return false;
  }
  gateway_ = std::move(*gateway);
  return true;
}

HttpResult Demo::post(const std::string& base, std::string_view key, std::string_view body,
                      std::vector<std::string> headers) const {
  headers.push_back("Content-Type: application/json");
  headers.push_back(fmt::format("Idempotency-Key: \"{}\"", key));
  return call({"POST", base + "/orders", std::move(headers), std::string(body)});
}

/// How many orders the shop booked under this key: counted by the shop, outside einmal.
std::size_t Demo::booked(const std::string& key) const {
  const auto answer = call({"GET", shop_->url() + "/effects", {}, {}});
  const auto count = member(answer.body, key);
  return count.empty() ? 0 : std::stoul(count);
}

void Demo::promise_booked(const std::string& key, std::size_t times) {
  const auto count = booked(key);
  say_.promise(count == times,
               fmt::format("the shop has booked {} {}", count, count == 1 ? "order" : "orders"));
}

bool Demo::wait_until(const std::function<bool()>& seen) const {
  const auto end = Clock::now() + std::chrono::seconds(20);
  while (!seen()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

void Demo::without_einmal() {
  say_.step("Without einmal: a retry is a second order",
            "The client saw no answer and sends again, straight to the shop.");
  say_.sent("POST /orders  key tea-1        (the answer is lost after the shop has booked)");
  say_.came(in_words(post(shop_->url(), "tea-1", coffee, {"X-Demo-Fault: drop-after-commit"})));
  say_.sent("POST /orders  key tea-1        the same again");
  say_.came(in_words(post(shop_->url(), "tea-1", coffee)));
  say_.note(fmt::format("the shop has booked {} orders, the customer wanted one", booked("tea-1")));
}

void Demo::first_and_replay() {
  say_.step("With einmal: the first request", "The gateway claims the key durably, then forwards.");
  say_.sent("POST /orders  key coffee-1");
  first_ = order("coffee-1");
  say_.came(in_words(first_));
  say_.promise(first_.status == 201, "executed: 201 and a new order");
  promise_booked("coffee-1", 1);

  say_.step("The same request again", "A double click, an impatient client, a retry by a library.");
  say_.sent("POST /orders  key coffee-1");
  const auto again = order("coffee-1");
  say_.came(in_words(again));
  say_.promise(again.status == 201 && again.body == first_.body &&
                   again.header("Idempotency-Status") == "replayed",
               "replayed: the same status and the same bytes");
  promise_booked("coffee-1", 1);
}

void Demo::other_body() {
  say_.step("The same key for another order", "A bug in the client: 30000 instead of 300.");
  say_.sent("POST /orders  key coffee-1     another amount");
  const auto other = order("coffee-1", more_coffee);
  say_.came(in_words(other));
  say_.promise(other.status == 422, "refused, and the first result is untouched");
  promise_booked("coffee-1", 1);
}

void Demo::twenty_at_once() {
  say_.step("Twenty at once", "The same request twenty times in parallel; the shop takes 300 ms.");
  say_.sent("POST /orders  key coffee-2     x 20");
  std::vector<std::future<HttpResult>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::async(
        std::launch::async, [this] { return order("coffee-2", coffee, {"X-Demo-Delay: 300ms"}); }));
  }
  std::size_t executed = 0, replayed = 0, refused = 0;
  std::set<std::string> successes;
  for (auto& each : calls) {
    const auto result = each.get();
    const auto status = result.header("Idempotency-Status");
    if (status == "executed") ++executed;
    if (status == "replayed") ++replayed;
    if (result.status == 409) ++refused;
    if (result.status == 201) successes.insert(result.body);
  }
  say_.came(fmt::format("{} executed, {} replayed{}", executed, replayed,
                        refused ? fmt::format(", {} told to come back (409)", refused) : ""));
  say_.promise(executed == 1 && executed + replayed + refused == 20 && successes.size() == 1,
               "one executed; every success carries the same bytes");
  promise_booked("coffee-2", 1);
}

void Demo::lost_answer() {
  say_.step("The answer is lost after the shop has booked",
            "The connection to the shop breaks. Did it happen? Nobody on this side can know.");
  say_.sent("POST /orders  key coffee-3     (the shop books, then the connection drops)");
  const auto lost = order("coffee-3", coffee, {"X-Demo-Fault: drop-after-commit"});
  say_.came(in_words(lost));
  say_.promise(lost.status == 504 && member(lost.body, "reason") == "outcome-uncertain",
               "said honestly: the outcome is unknown");
  say_.sent("POST /orders  key coffee-3     the client retries");
  const auto again = order("coffee-3", coffee, {"X-Demo-Fault: drop-after-commit"});
  say_.came(in_words(again));
  say_.promise(again.status == 504, "not executed a second time");
  promise_booked("coffee-3", 1);
}

/// `einmal records resolve` for an order of the demo; its exit code.
int Demo::settle(const std::string& key, const std::string& body) {
  std::ofstream(work_.file("body.json")) << body;
  ChangeOptions change;
  change.common.store = "sqlite:" + work_.file("einmal.db");
  change.record.caller = "demo";
  change.record.operation = "create-order";
  change.record.key = key;
  change.evidence = "GET /orders?key=" + key + " at the shop";
  change.yes = true;
  ResolveOptions resolve;
  resolve.change = change;
  resolve.completed = true;
  resolve.status = 201;
  resolve.body_file = work_.file("body.json");
  resolve.headers = {"Content-Type: application/json", "Location: /orders/" + member(body, "id")};
  resolve.quiet = true;
  return records_resolve(resolve);
}

void Demo::settled_by_hand() {
  say_.step("A person settles it, with evidence", "The shop can be asked: has it booked this key?");
  const auto found = call({"GET", shop_->url() + "/orders?key=coffee-3", {}, {}});
  const auto start = found.body.find('[') + 1;
  const auto booked_order = found.body.substr(start, found.body.find(']') - start);
  say_.sent("GET /orders?key=coffee-3           at the shop");
  say_.came(std::to_string(found.status) + "  order " + member(booked_order, "id"));
  say_.sent("einmal records resolve --completed --status 201 --key coffee-3 ...");
  const bool settled = settle("coffee-3", booked_order) == 0;
  say_.sent("POST /orders  key coffee-3     the client retries once more");
  const auto answer = order("coffee-3", coffee, {"X-Demo-Fault: drop-after-commit"});
  say_.came(in_words(answer));
  say_.promise(settled && answer.status == 201 && answer.body == booked_order,
               "the client has its answer, without a second order");
  promise_booked("coffee-3", 1);
}

void Demo::killed_gateway() {
  say_.step("kill -9 of the gateway in mid-request",
            "The shop is working on an order when the gateway dies without a word.");
  const auto slow = [this] { return order("coffee-4", coffee, {"X-Demo-Delay: 1s"}); };
  say_.sent("POST /orders  key coffee-4     (the shop takes 1 s; the gateway dies at 0.3 s)");
  auto interrupted = std::async(std::launch::async, slow);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // At the same address, as a supervisor would: the authority is part of what a request is.
  const auto address = gateway_->url().substr(std::string_view("http://").size());
  gateway_->kill();
  say_.came(in_words(interrupted.get()));
  if (!start_gateway(address)) {
    say_.promise(false, "the gateway starts again on the same file");
    return;
  }
  say_.note("the gateway was started again on the same file");
  say_.sent("POST /orders  key coffee-1     from before the crash");
  const auto before = order("coffee-1");
  say_.came(in_words(before));
  say_.promise(before.body == first_.body && before.header("Idempotency-Status") == "replayed",
               "still replayed, byte for byte");
  say_.sent("POST /orders  key coffee-4     until the dead owner's lease (2 s) is over");
  HttpResult after;
  const bool settled = wait_until([&] {
    after = slow();
    return after.status != 409;
  });
  say_.came(in_words(after));
  say_.promise(
      settled && after.status == 504 && member(after.body, "reason") == "outcome-uncertain",
      "unknown, so uncertain: never run again by the passing of time");
  say_.promise(wait_until([&] { return booked("coffee-4") == 1; }), "the shop has booked 1 order");
}

int Demo::run() {
  if (!start()) return 1;
  say_.title("einmal demo: one key, one order");
  say_.fact("shop", shop_->url() + "   books every request it gets, also the second copy");
  say_.fact("gateway", gateway_->url() + "   einmal, before the shop");
  say_.fact("store", "sqlite, a fresh file in a temporary directory");
  without_einmal();
  first_and_replay();
  other_body();
  twenty_at_once();
  lost_answer();
  settled_by_hand();
  killed_gateway();
  if (say_.broken() != 0) {
    fmt::print("\n  {} of {} promises were broken.\n\n", say_.broken(), say_.promises());
    return 1;
  }
  fmt::print("\n  All {} promises held.\n\n", say_.promises());
  return 0;
}

}  // namespace

int demo(const DemoOptions& options) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool colours = !options.plain && ::isatty(STDOUT_FILENO) == 1 && !(no_colour && *no_colour);
  Narrator narrator(colours);
  return Demo(narrator).run();
}

}  // namespace einmal::programs
