#pragma once

#include <memory>
#include <optional>
#include <string>

#include "einmal/base/error.hpp"
#include "einmal/gateway/config.hpp"
#include "einmal/gateway/upstream_pool.hpp"
#include "einmal/http/head.hpp"

namespace einmal::gateway {

/// A service beside the upstream that decides who is let in (`auth-request:URL`), and the
/// connections to it.
class AskedService {
 public:
  /// Errors: invalid (no http or https URL), or those of the TLS files.
  static Result<std::shared_ptr<AskedService>> make(Loop& loop, const std::string& url,
                                                    const UpstreamConfig& like,
                                                    const http::ParserLimits& limits);

  /// Asks with the request's own head lines (its credentials among them), its method in
  /// X-Original-Method and its target in X-Original-URI; the body is not sent. Nothing: no readable
  /// answer in time. A connection that turns out dead is not tried again.
  Async<std::optional<http::ResponseHead>> ask(const http::RequestHead& request,
                                               const UpstreamTimes& times);

 private:
  AskedService() = default;
  std::string path_, host_;
  std::unique_ptr<UpstreamPool> pool_;
};

}  // namespace einmal::gateway
