// A client that orders tea once, however often it is run, killed or disconnected:
//   einmal_order_client JOURNAL URL INTENT [restarted hours later: run the same command again]
#include <fmt/core.h>

#include <variant>

#include "einmal/client/client.hpp"

namespace {

using namespace einmal;

/// What the user sees, by verdict: five cases, none of them "try again with a new key".
struct Say {
  void operator()(const client::verdict::Succeeded& done) const {
    fmt::print("ordered: {}\n", done.answer.body);
  }
  void operator()(const client::verdict::Replayed& done) const {
    fmt::print("ordered: {}\n", done.answer.body);
  }
  void operator()(const client::verdict::Refused& refused) const {
    fmt::print("not ordered ({}): {}\n", client::name(refused.why), refused.answer.body);
  }
  void operator()(const client::verdict::NotAttempted& nothing) const {
    fmt::print("not sent yet ({}): nothing was ordered\n", client::name(nothing.why));
  }
  void operator()(const client::verdict::Unknown& open) const {
    fmt::print("we are still finding out ({}): do not order again\n", client::name(open.why));
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  SystemClock clock;
  SystemRandom random;
  client::SystemPause pause;
  const auto transport = client::make_curl_transport();
  const auto journal = client::Journal::open(argv[1], random, clock.wall_now());
  if (!journal) {
    fmt::print(stderr, "{}\n", journal.error().message);
    return 1;
  }
  client::ClientOptions options;
  options.patience.deadline = std::chrono::seconds(20);
  client::Client client({**journal, *transport, clock, random, pause}, options);

  client::Request request;
  request.url = argv[2];
  request.headers = {{"Content-Type", "application/json"}};
  request.body = R"({"item":"tea","amount":300})";
  const auto outcome = client.send(argv[3], request);
  if (!outcome) {
    fmt::print(stderr, "{}\n", outcome.error().message);
    return 2;
  }
  std::visit(Say{}, outcome->verdict);
  return client::is_settled(outcome->verdict) ? 0 : 1;
}
