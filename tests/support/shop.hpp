#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "einmal/testing/process.hpp"
#include "einmal/testing/raw_client.hpp"

namespace einmal::test {

/// The demo shop as a process, on a port that the system picked. Its books survive it.
class ShopProcess {
 public:
  /// With its books in a file of the directory. Throws std::runtime_error with the process's errors
  /// if it does not get ready.
  explicit ShopProcess(const std::string& directory, std::vector<std::string> switches = {})
      : ShopProcess(Ledger{directory + "/ledger.db"}, std::move(switches)) {}
  /// With its books there.
  struct Ledger {
    std::string where;
  };
  ShopProcess(const Ledger& ledger, std::vector<std::string> switches)
      : process_(command(ledger.where, std::move(switches))) {
    const auto line = process_.wait_for_line("listening on ");
    if (!line) throw std::runtime_error("the shop did not start: " + process_.errors());
    url_ = line->substr(line->find("http://"));
    port_ = static_cast<std::uint16_t>(std::stoul(url_.substr(url_.rfind(':') + 1)));
  }

  const std::string& url() const { return url_; }
  std::uint16_t port() const { return port_; }
  ChildProcess& process() { return process_; }
  /// How many effects its books hold.
  std::string effects() const { return HttpClient(port_).get("/effects").member("count"); }

 private:
  static std::vector<std::string> command(const std::string& ledger,
                                          std::vector<std::string> switches) {
    switches.insert(switches.begin(), {sibling_program("einmal"), "shop", "--listen", "127.0.0.1:0",
                                       "--ledger", ledger});
    return switches;
  }

  ChildProcess process_;
  std::string url_;
  std::uint16_t port_ = 0;
};

}  // namespace einmal::test
