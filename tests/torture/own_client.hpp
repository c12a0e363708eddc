#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "einmal/client/verdict.hpp"

namespace einmal::test {

/// The project's own client as one of the clients of a torture run: a journal of its own, little
/// patience. Its requests go through a balancer that picks a gateway for each attempt, so that the
/// URL of an intent stays what it was while gateways come back on other ports. Belongs to one
/// thread.
class OwnClient {
 public:
  /// `pick` says the port for the next attempt. Throws std::runtime_error.
  OwnClient(const std::string& journal, std::uint64_t seed, std::function<std::uint16_t()> pick);
  ~OwnClient();
  OwnClient(const OwnClient&) = delete;
  OwnClient& operator=(const OwnClient&) = delete;

  struct Said {
    client::Verdict verdict;
    int attempts = 0;
  };
  /// Sends the order of this key, which is also the name of its intent. Throws std::runtime_error
  /// when the client returns an error: it is given no reason to.
  Said order(const std::string& key, const std::string& body);

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace einmal::test
