#include "http_call.hpp"

#include <curl/curl.h>
#include <strings.h>

#include <memory>
#include <string_view>

namespace einmal::programs {

namespace {

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* into) {
  static_cast<HttpResult*>(into)->body.append(bytes, size * count);
  return size * count;
}

std::size_t take_header(char* bytes, std::size_t size, std::size_t count, void* into) {
  std::string_view line(bytes, size * count);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  const auto colon = line.find(':');
  if (colon != std::string_view::npos) {
    auto value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    static_cast<HttpResult*>(into)->headers.emplace_back(line.substr(0, colon), value);
  }
  return size * count;
}

struct CurlLibrary {
  CurlLibrary() { curl_global_init(CURL_GLOBAL_DEFAULT); }
  ~CurlLibrary() { curl_global_cleanup(); }
};

}  // namespace

std::string HttpResult::header(const std::string& name) const {
  for (const auto& [key, value] : headers) {
    if (strcasecmp(key.c_str(), name.c_str()) == 0) return value;
  }
  return {};
}

HttpResult call(const HttpCall& request) {
  static const CurlLibrary library;
  HttpResult result;
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> lines(nullptr, curl_slist_free_all);
  for (const auto& line : request.headers)
    lines.reset(curl_slist_append(lines.release(), line.c_str()));
  curl_easy_setopt(curl.get(), CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.body.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, request.body.data());
  }
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &result);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &result);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 60L);
  // A fresh handle has no connection to reuse, so libcurl has no reason to send anything twice.
  const auto code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) {
    result.problem = code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR
                         ? "the connection broke"
                         : curl_easy_strerror(code);
    return result;
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  result.status = static_cast<int>(status);
  return result;
}

}  // namespace einmal::programs
