#include "einmal/gateway/gateway_fixture.hpp"
#include "einmal/testing/certificate.hpp"

/// TLS on both sides: one gateway connects over TLS to another one that listens with TLS.

namespace einmal::test {
namespace {

using std::chrono::seconds;

class Tls : public GatewayTest {
 protected:
  /// `config_` listens with TLS before the upstream; `front_config_` connects to it over TLS.
  Tls() {
    config_.tls = ServerTls{server_.certificate, server_.key, std::nullopt, TlsVersion::tls12};
    front_config_.listen.port = 0;
    front_config_.name_space = "front";
    front_config_.upstream.tls.ca = server_.certificate;
    OperationConfig orders;
    orders.name = "create-order";
    orders.match = {"POST", "/orders"};
    front_config_.operations.push_back(orders);
  }
  ~Tls() override { stop_front(); }

  void start_both() {
    start();
    start_front();
  }
  void start_front() {
    front_config_.upstream.addresses = {{true, {"127.0.0.1", gateway_->port()}}};
    front_store_ = open_sqlite_store(directory_.file("front.db"), {}, clock_, random_).value();
    front_ =
        std::make_unique<Gateway>(front_config_, *front_store_, clock_, random_, no_observer());
    const auto opened = front_->open();
    ASSERT_TRUE(opened) << opened.error().message;
    front_thread_ = std::thread([this] { front_->run(); });
  }
  void stop_front() {
    if (front_thread_.joinable()) {
      front_->stop_now();
      front_thread_.join();
    }
    front_.reset();
    front_store_.reset();
  }
  HttpAnswer send_through(const std::string& key, const std::string& body = "{}") {
    return HttpClient(front_->port()).send(order(key, body));
  }

  SelfSigned server_ = make_certificate(directory_.file(""), "server", "IP:127.0.0.1");
  SelfSigned client_ = make_certificate(directory_.file(""), "client", "DNS:client.example");
  GatewayConfig front_config_;
  std::unique_ptr<Store> front_store_;
  std::unique_ptr<Gateway> front_;
  std::thread front_thread_;
};

TEST_F(Tls, CarriesKeyedRequestsAndReusesConnections) {
  start_both();
  const auto first = send_through("K1");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(send_through("K1").body, first.body);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(send_through("R" + std::to_string(i)).status, 201);
  EXPECT_EQ(upstream_.count(), 6U);
}

TEST_F(Tls, CarriesLargeBodiesBothWays) {
  start_both();
  upstream_.always(
      [](const HttpRequest& request, std::size_t) { return Play().answer(200, request.body); });
  HttpRequest request;
  request.method = "PUT";
  request.target = "/files/x";
  request.body.resize(std::size_t{8} << 20);
  for (std::size_t i = 0; i < request.body.size(); ++i)
    request.body[i] = static_cast<char>('a' + i * 7 % 26);
  EXPECT_EQ(HttpClient(front_->port()).send(request).body, request.body);
}

TEST_F(Tls, AnUpstreamThatCannotProveItsNameGetsNothing) {
  const auto other = make_certificate(directory_.file(""), "other", "DNS:other.example");
  config_.tls->certificate = other.certificate;
  config_.tls->key = other.key;
  front_config_.upstream.tls.ca = other.certificate;
  start_both();
  EXPECT_EQ(send_through("K1").member("reason"), "upstream-unreachable");
  stop_front();
  front_config_.upstream.tls.server_name = "other.example";
  start_front();
  EXPECT_EQ(send_through("K1").header("Idempotency-Status"), "executed");
  stop_front();
  front_config_.upstream.tls.server_name.reset();
  front_config_.upstream.tls.ca = client_.certificate;
  start_front();
  EXPECT_EQ(send_through("K2").member("reason"), "upstream-unreachable");
  stop_front();
  front_config_.upstream.tls.verify = false;
  start_front();
  EXPECT_EQ(send_through("K2").header("Idempotency-Status"), "executed");
}

TEST_F(Tls, CallersByCertificate) {
  config_.tls->client_ca = client_.certificate;
  config_.caller.kind = CallerKind::mtls;
  config_.caller.argument = "san:dns";
  front_config_.operations.front().key.required = false;
  front_config_.operations.front().match.path = "/unused";
  start_both();
  EXPECT_EQ(send_through("K1").status, 403);
  stop_front();
  front_config_.upstream.tls.certificate = client_.certificate;
  front_config_.upstream.tls.key = client_.key;
  start_front();
  EXPECT_EQ(send_through("K1").header("Idempotency-Status"), "executed");
}

TEST_F(Tls, CertificatesAreReadAgainAtAReload) {
  start_both();
  EXPECT_EQ(send_through("K1").status, 201);
  const auto renewed = make_certificate(directory_.file(""), "server", "IP:127.0.0.1");
  EXPECT_TRUE(gateway_->reload(config_));
  stop_front();
  start_front();  // Trusts only the new certificate now.
  EXPECT_EQ(send_through("K2").status, 201);
  std::remove(renewed.key.c_str());
  EXPECT_FALSE(gateway_->reload(config_));
  EXPECT_EQ(send_through("K3").status, 201);
}

TEST_F(Tls, PlainTextOnATlsPortIsNotServed) {
  start_both();
  RawClient client(gateway_->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_to_end().bytes.find("HTTP/"), std::string::npos);
  EXPECT_EQ(upstream_.begun(), 0U);
}

TEST_F(Tls, UnusableFilesAreNamed) {
  config_.tls->key = directory_.file("missing.key");
  store_ = open_sqlite_store(directory_.file("einmal.db"), {}, clock_, random_).value();
  Gateway gateway(config_, *store_, clock_, random_, no_observer());
  const auto opened = gateway.open();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("missing.key"), std::string::npos);
}

}  // namespace
}  // namespace einmal::test
