#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/testing/process.hpp"
#include "einmal/testing/raw_client.hpp"
#include "einmal/testing/scripted_upstream.hpp"

/// What tests over real gateway processes share.

namespace einmal::test {

/// URL of a new store: a file in `directory`, or a database, by which of store_on_*.cpp is linked.
std::string new_store(const std::string& directory);

/// How a gateway under test is configured. TOML lines; every part may be empty.
struct GatewaySetup {
  std::string upstream;                    ///< URL.
  std::string store;                       ///< URL; empty: the test's own, see new_store.
  std::string store_lines;                 ///< More lines for [store].
  std::string caller = "header:X-Caller";  ///< [caller] source
  std::string caller_lines;                ///< More lines for [caller].
  std::string gateway;                     ///< Lines for [gateway].
  std::string limits;                      ///< Lines for [limits].
  std::string defaults;                    ///< Lines for [defaults].
  std::string operations = R"([[operation]]
name = "create-order"
match = "POST /orders"
)";
};

/// A gateway process on a port that the system picked. The store outlives it: `kill` and `start`
/// again for a crash and a restart.
class GatewayProcess {
 public:
  GatewayProcess(std::string directory, GatewaySetup setup);

  /// Throws std::runtime_error with the process's errors if it does not get ready.
  void start(ChildProcess::Environment environment = {});
  /// From the next start on no file can grow beyond this many KiB; 0: no limit.
  void limit_file_size(unsigned kib) { file_limit_kib_ = kib; }
  void kill() { process_->kill(); }
  void restart() {
    process_.reset();
    start();
  }

  std::uint16_t port() const { return port_; }
  ChildProcess& process() { return *process_; }
  GatewaySetup& setup() { return setup_; }
  std::string config_file() const { return directory_ + "/" + name_ + ".toml"; }
  const std::string& store_url() const { return setup_.store; }
  /// The TOML text of `setup`.
  std::string config() const;

 private:
  std::string directory_, name_;
  GatewaySetup setup_;
  std::unique_ptr<ChildProcess> process_;
  std::uint16_t port_ = 0;
  unsigned file_limit_kib_ = 0;
};

/// Fixture: a scripted upstream and a gateway before it, on a SQLite file of its own.
class GatewayTest : public ::testing::Test {
 protected:
  /// Starts the gateway; call it once, first.
  void open(GatewaySetup setup = {});
  /// One more process on the same store.
  std::unique_ptr<GatewayProcess> another();

  /// An order by caller "alice" under `key`, as the client would repeat it.
  static HttpRequest order(std::string_view key, std::string body = R"({"sku":"A-1","qty":1})",
                           HeaderList headers = {});
  HttpAnswer send(const HttpRequest& request) const {
    return HttpClient(gateway_->port()).send(request);
  }
  /// Sends the same request `n` times in parallel, through these ports in turn.
  static std::vector<HttpAnswer> send_at_once(const HttpRequest& request, std::size_t n,
                                              const std::vector<std::uint16_t>& ports);
  std::vector<HttpAnswer> send_at_once(const HttpRequest& request, std::size_t n) const {
    return send_at_once(request, n, {gateway_->port()});
  }
  /// Repeats `request` until the answer is another than 409 in-progress.
  HttpAnswer send_until_decided(const HttpRequest& request) const;

  TempDir directory_;
  ScriptedUpstream upstream_;
  std::unique_ptr<GatewayProcess> gateway_;
};

/// The value of Idempotency-Status.
std::string status_of(const HttpAnswer& answer);
/// The reason of a problem document, or empty.
std::string reason_of(const HttpAnswer& answer);

/// "201 executed", "422 mismatch key-reused": for assertions that say what came.
std::string in_words(const HttpAnswer& answer);

}  // namespace einmal::test
