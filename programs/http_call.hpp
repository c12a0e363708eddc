#pragma once

#include <string>
#include <utility>
#include <vector>

namespace einmal::programs {

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string body;
};

struct HttpResult {
  int status = 0;  ///< 0: no answer came; `problem` says why.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string problem;

  /// The first line of that name, or empty.
  std::string header(const std::string& name) const;
};

/// One request on a connection of its own, never sent twice. Thread-safe.
HttpResult call(const HttpCall& request);

}  // namespace einmal::programs
