#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "einmal/client/client.hpp"

/// killable_client JOURNAL URL BODY [POINT]: sends one intent ("refund order 4711") and prints its
/// verdict and key; is killed by -9 at the named point of its first attempt, if one is given.

namespace {

using namespace einmal;

class Killer final : public client::Watcher {
 public:
  explicit Killer(std::string point) : point_(std::move(point)) {}
  void at(client::Point point) override {
    if (name(point) == point_) ::kill(::getpid(), SIGKILL);
  }

 private:
  std::string point_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  Killer killer(argc > 4 ? argv[4] : "");
  SystemClock clock;
  SystemRandom random;
  client::SystemPause pause;
  client::CurlOptions curl;
  curl.proxy = "";
  const auto transport = client::make_curl_transport(curl);
  auto journal = client::Journal::open(argv[1], random, clock.wall_now());
  if (!journal) {
    fmt::print(stderr, "{}\n", journal.error().message);
    return 1;
  }
  client::ClientOptions options;
  options.patience.backoff_base = std::chrono::milliseconds(5);
  options.patience.deadline = std::chrono::seconds(20);
  client::Client client({**journal, *transport, clock, random, pause, &killer}, options);
  client::Request request;
  request.url = argv[2];
  request.headers = {{"Content-Type", "application/json"}};
  request.body = argv[3];
  const auto outcome = client.send("refund order 4711", request);
  if (!outcome) {
    fmt::print(stderr, "{}\n", outcome.error().message);
    return 2;
  }
  fmt::print("{} {}\n", client::name(outcome->verdict), outcome->key);
  return 0;
}
