#pragma once

#include <string>

#include "einmal/http/head.hpp"

namespace einmal::shop {

struct Request {
  std::string method;
  std::string target;         ///< Origin form.
  http::HeaderLines headers;  ///< Every line.
  std::string body;
};

struct Reply {
  int status = 200;
  http::HeaderLines headers;  ///< Without Content-Length, which follows from the body.
  std::string body;
};

}  // namespace einmal::shop
