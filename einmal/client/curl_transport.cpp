#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "einmal/client/transport.hpp"

namespace einmal::client {

namespace {

struct CurlLibrary {
  CurlLibrary() { curl_global_init(CURL_GLOBAL_DEFAULT); }
  ~CurlLibrary() { curl_global_cleanup(); }
};

/// One request on one handle.
class CurlExchange {
 public:
  CurlExchange(const CurlOptions& options, Watcher* watcher)
      : options_(options), watcher_(watcher), curl_(curl_easy_init(), curl_easy_cleanup) {}

  Exchange run(const WireRequest& request, Duration time) {
    if (!curl_) return exchange::NotSent{"out of memory", false};
    set_request(request);
    set_manners(time);
    const CURLcode code = curl_easy_perform(curl_.get());
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    answer_.status = static_cast<int>(status);
    // libcurl is content with a stream that ends inside the head.
    if (code == CURLE_OK && status >= 200 && head_ended_) {
      tell(Point::answer_whole);
      return std::move(answer_);
    }
    const std::string why = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
    if (code == CURLE_OK) return exchange::NoAnswer{"the answer ended early"};
    if (!connected_) return exchange::NotSent{why, is_for_good(code)};
    return exchange::NoAnswer{why};
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(curl_.get(), option, value);
  }

  void add_line(const std::string& line) {
    if (curl_slist* longer = curl_slist_append(lines_.get(), line.c_str())) {
      (void)lines_.release();
      lines_.reset(longer);
    }
  }

  void set_request(const WireRequest& request) {
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    const bool reads = request.method == "GET";
    if (!reads) {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
    // What libcurl would add by itself may change with its version; the bytes are ours.
    for (const char* name : {"Accept", "Content-Type", "Expect", "User-Agent"}) {
      if (!request.headers.has(name)) add_line(std::string(name) + ":");
    }
    for (const auto line : request.headers) {
      // A line without a value is spelled with a semicolon for libcurl.
      add_line(line.value.empty() ? fmt::format("{};", line.name)
                                  : fmt::format("{}: {}", line.name, line.value));
    }
    set(CURLOPT_HTTPHEADER, lines_.get());
  }

  void set_manners(Duration time) {
    using std::chrono::milliseconds;
    const auto whole = std::chrono::ceil<milliseconds>(std::max(time, Duration(1000))).count();
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(whole));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::min<std::int64_t>(whole, 10'000)));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_HTTP09_ALLOWED, 0L);
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_ERRORBUFFER, error_);
    if (options_.proxy) set(CURLOPT_PROXY, options_.proxy->c_str());
    if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
    set(CURLOPT_PREREQFUNCTION, &CurlExchange::connected);
    set(CURLOPT_PREREQDATA, this);
    set(CURLOPT_HEADERFUNCTION, &CurlExchange::take_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &CurlExchange::take_body);
    set(CURLOPT_WRITEDATA, this);
  }

  static bool is_for_good(CURLcode code) {
    switch (code) {
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_ISSUER_ERROR:
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
        return true;
      default:
        return false;
    }
  }

  void tell(Point point) {
    if (watcher_ != nullptr) watcher_->at(point);
  }

  static int connected(void* self, char*, char*, int, int) {
    auto& exchange = *static_cast<CurlExchange*>(self);
    exchange.connected_ = true;
    exchange.tell(Point::connected);
    return CURL_PREREQFUNC_OK;
  }

  static std::size_t take_header(char* bytes, std::size_t size, std::size_t count, void* self) {
    static_cast<CurlExchange*>(self)->header({bytes, size * count});
    return size * count;
  }

  void header(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
    if (line.rfind("HTTP/", 0) == 0) {  // a status line: what came before was interim
      if (!began_) tell(Point::answer_began);
      began_ = true;
      head_ended_ = false;
      answer_ = {};
      return;
    }
    if (head_ended_) return;  // a trailer: it says nothing about the key
    if (line.empty()) head_ended_ = true;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !http::is_token(line.substr(0, colon))) return;
    const auto value = http::trim(line.substr(colon + 1));
    if (http::is_field_value(value)) answer_.headers.add(line.substr(0, colon), value);
  }

  static std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* self) {
    auto& exchange = *static_cast<CurlExchange*>(self);
    Answer& answer = exchange.answer_;
    if (answer.body.size() + size * count > exchange.options_.largest_answer) {
      answer.body_cut = true;
      answer.body.clear();
    }
    if (!answer.body_cut) answer.body.append(bytes, size * count);
    return size * count;
  }

  const CurlOptions& options_;
  Watcher* watcher_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> lines_{nullptr, curl_slist_free_all};
  Answer answer_;
  bool connected_ = false;
  bool began_ = false;
  bool head_ended_ = false;
  char error_[CURL_ERROR_SIZE] = {};
};

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(CurlOptions options) : options_(std::move(options)) {
    static const CurlLibrary library;
  }
  Exchange send(const WireRequest& request, Duration time, Watcher* watcher) override {
    return CurlExchange(options_, watcher).run(request, time);
  }

 private:
  CurlOptions options_;
};

}  // namespace

std::string_view name(Point point) {
  switch (point) {
    case Point::intent_durable:
      return "intent_durable";
    case Point::attempt_durable:
      return "attempt_durable";
    case Point::connected:
      return "connected";
    case Point::answer_began:
      return "answer_began";
    case Point::answer_whole:
      return "answer_whole";
    case Point::verdict_durable:
      return "verdict_durable";
  }
  return {};
}

std::unique_ptr<Transport> make_curl_transport(CurlOptions options) {
  return std::make_unique<CurlTransport>(std::move(options));
}

}  // namespace einmal::client
