#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "einmal/gateway/gateway_fixture.hpp"
#include "einmal/testing/tcp_gate.hpp"

/// Several upstream addresses: turns, addresses that are down, and requests that stay where they
/// began.

namespace einmal::test {
namespace {

/// A loopback port that answers no attempt to connect, neither yes nor no.
class SilentPort {
 public:
  SilentPort() {
    descriptor_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const as_general = reinterpret_cast<sockaddr*>(&address);
    if (bind(descriptor_, as_general, size) != 0 || listen(descriptor_, 0) != 0 ||
        getsockname(descriptor_, as_general, &size) != 0)
      throw std::runtime_error("no port to be silent on");
    port_ = ntohs(address.sin_port);
    for (int& filler : fillers_) {  // The queue is full; what comes after is not answered.
      filler = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      static_cast<void>(connect(filler, as_general, size));
    }
  }
  ~SilentPort() {
    for (const int filler : fillers_) close(filler);
    close(descriptor_);
  }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  int descriptor_ = -1;
  std::array<int, 4> fillers_{};
  std::uint16_t port_ = 0;
};

class Addresses : public GatewayTest {
 protected:
  void also(std::uint16_t port) {
    config_.upstream.addresses.insert(config_.upstream.addresses.begin(),
                                      {false, {"127.0.0.1", port}});
  }
  HttpAnswer get() { return HttpClient(gateway_->port()).get("/things"); }
};

TEST_F(Addresses, TakeTurns) {
  ScriptedUpstream second;
  ScriptedUpstream third;
  also(second.port());
  also(third.port());
  start();
  for (int i = 0; i < 9; ++i) EXPECT_EQ(get().status, 201);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(send_order("K" + std::to_string(i)).status, 201);
  for (const auto* each : {&upstream_, &second, &third}) EXPECT_EQ(each->count(), 6U);
}

TEST_F(Addresses, ThatCannotBeConnectedToAreNoFailureWhileAnotherOneCan) {
  also(refused_port());
  start();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(get().status, 201);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(send_order("K" + std::to_string(i)).status, 201);
}

TEST_F(Addresses, ThatDoNotAnswerLeaveTimeForTheOthers) {
  const SilentPort silent;
  also(silent.port());
  config_.times.connect = std::chrono::milliseconds(600);
  operation().times = config_.times;
  start();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get().status, 201) << i;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(send_order("K" + std::to_string(i)).status, 201) << i;
}

TEST_F(Addresses, ThatCameBackAreUsedAgain) {
  ScriptedUpstream second;
  TcpGate gate(second.port());
  gate.refuse(true);
  also(gate.port());
  start();
  // Whatever an address that takes connections and resets them does to these: nothing waits on it.
  for (int i = 0; i < 4; ++i) get();
  gate.refuse(false);
  EXPECT_TRUE(eventually([&] {
    get();
    return second.count() > 0;
  }));
}

TEST_F(Addresses, AreNotChangedOnceTheFirstByteWentOut) {
  ScriptedUpstream second;
  also(second.port());
  start();
  for (auto* each : {&upstream_, &second}) each->always(Play().reset());
  EXPECT_EQ(send_order("K1").member("reason"), "outcome-uncertain");
  EXPECT_EQ(upstream_.begun() + second.begun(), 1U);
  EXPECT_EQ(send_order("K1").member("reason"), "outcome-uncertain");
  HttpRequest unkeyed;
  unkeyed.target = "/things";
  unkeyed.body = "x";
  EXPECT_EQ(send(unkeyed).member("reason"), "upstream-failed");
  EXPECT_EQ(upstream_.begun() + second.begun(), 2U);
}

TEST_F(Addresses, NoneOfWhichCanBeConnectedToLeaveTheKeyFree) {
  config_.upstream.addresses.clear();
  also(refused_port());
  also(refused_port());
  start();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(send_order("K1").member("reason"), "upstream-unreachable");
  EXPECT_EQ(get().member("reason"), "upstream-failed");
}

}  // namespace
}  // namespace einmal::test
