#include "refund.hpp"

#include <curl/curl.h>

#include <cstdio>
#include <thread>

#include "einmal/postgres/postgres_store.hpp"
#include "einmal/sqlite/sqlite_store.hpp"
#include "einmal/workflow/start.hpp"
#include "einmal/workflow/worker.hpp"
#include "refund_orders.hpp"

namespace einmal::refund {

namespace {

using namespace std::chrono_literals;
using namespace workflow;

// Short, so that the example shows a recovery while one waits. A service takes seconds.
constexpr Duration call_at_most = 500ms;
constexpr Duration provider_quiescence = 1500ms;

/// What one exchange brought. status 0: no whole answer.
struct Answer {
  long status = 0;
  std::string body;
  bool connected = true;
};

std::size_t collect(char* data, std::size_t size, std::size_t count, void* into) {
  static_cast<std::string*>(into)->append(data, size * count);
  return size * count;
}

Answer exchange(const std::string& url, const std::string* body,
                const std::vector<std::string>& headers) {
  Answer answer;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  curl_slist* lines = nullptr;
  for (const std::string& line : headers) lines = curl_slist_append(lines, line.c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> owned(lines,
                                                                          curl_slist_free_all);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, lines);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::chrono::milliseconds(400).count()));
  if (body) curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body->c_str());
  const CURLcode code = curl_easy_perform(curl.get());
  answer.connected = code != CURLE_COULDNT_CONNECT;
  if (code == CURLE_OK) curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

/// A POST under the step's derived key: what its end means for the step.
ExternalOutcome post(const Provider& provider, const std::string& path, const std::string& body,
                     const StepContext& context, OutsideCall& call) {
  std::vector<std::string> headers{"Content-Type: application/json",
                                   "Idempotency-Key: \"" + context.derived_key() + "\""};
  if (context.attempt() == 1 && !provider.fault.empty())
    headers.push_back("X-Demo-Fault: " + provider.fault);
  if (!call.first_byte()) return said::NotNow{*call.nothing_sent()};
  const Answer answer = exchange(provider.url + path, &body, headers);
  if (!answer.connected) return said::NotNow{NoEffect::told("the connection was refused")};
  if (answer.status == 201) return said::Done{answer.body, {}};
  if (answer.status == 402) {
    StoredResult refused;
    refused.status = 402;
    refused.body = answer.body;
    return said::Refused{refused};
  }
  return said::Unknown{"status " + std::to_string(answer.status)};
}

/// Whether the provider's books have an entry under the derived key.
in_doubt::Found look_up(const Provider& provider, const std::string& path,
                        const StepContext& context) {
  const Answer answer =
      exchange(provider.url + path + "?key=" + context.derived_key(), nullptr, {});
  if (answer.status != 200) return said::Unknown{"status " + std::to_string(answer.status)};
  if (answer.body.find("\"id\"") == std::string::npos) return in_doubt::Absent{};
  return said::Done{answer.body, {}};
}

InDoubt policy(const Provider& provider, const std::string& path) {
  if (provider.honours_keys) return in_doubt::Resend{};
  return in_doubt::Reconcile{
      [provider, path](const StepContext& context) { return look_up(provider, path, context); },
      provider_quiescence};
}

ExternalStep external(const std::string& name, const Provider& provider, const std::string& path,
                      std::function<std::string(const StepContext&)> body) {
  return ExternalStep{name, provider.url, call_at_most, policy(provider, path),
                      [provider, path, body](const StepContext& context, OutsideCall& call) {
                        return post(provider, path, body(context), context, call);
                      }};
}

Result<std::unique_ptr<Store>> open_store(const std::string& database, const Clock& clock,
                                          Random& random) {
  if (database.rfind("sqlite:", 0) == 0)
    return open_sqlite_store(database.substr(7) + "/einmal.db", {}, clock, random);
  return open_postgres_store(database, {}, clock, random);
}

Result<int> work(const Arguments& arguments, Observer& observer) {
  const SystemClock clock;
  SystemRandom random;
  auto store = open_store(arguments.database, clock, random);
  if (!store) return pass_on(store);
  auto orders = open_orders(arguments.database, clock, random);
  if (!orders) return pass_on(orders);

  auto scope = Scope::make("app", "customer-1", "refund", "refund-" + arguments.order);
  if (!scope) return pass_on(scope);
  StartRequest request{*scope, {}, nullptr, {}, "refund/1", arguments.order};
  auto started = start(**store, random, request);
  if (!started) return pass_on(started);

  DependencyLimits limits;
  limits.longest_pause = 1s;
  limits.open_for = 500ms;
  Dependencies dependencies(clock, random, limits);
  WorkerOptions options;
  options.margin = 500ms;
  options.lease = 1s;
  auto worker =
      Worker::make(**store, clock, random, dependencies, definitions(**orders, arguments.provider),
                   &(*orders)->session(), observer, options);
  if (!worker) return pass_on(worker);
  while (true) {  // a service would call worker->run(stop_token) here
    while (true) {
      auto ran = (*worker)->run_one();
      if (!ran) return pass_on(ran);
      if (!*ran) break;
    }
    auto counts = ask(**store, request::CountWorkflows{});
    if (!counts) return pass_on(counts);
    if (std::get<answer::WorkflowCounts>(*counts).definitions.empty()) break;
    std::this_thread::sleep_for(20ms);
  }
  auto ended = start(**store, random, request);
  if (!ended) return pass_on(ended);
  const auto* replay = std::get_if<started::Replay>(&*ended);
  return replay ? replay->record.result->status : 0;
}

}  // namespace

std::vector<Definition> definitions(Orders& orders, const Provider& provider) {
  const LocalStep begin{"begin", [&orders](const StepContext& context) -> LocalOutcome {
                          if (orders.begin_refund(context.input())) return said::Done{};
                          StoredResult refused;
                          refused.status = 409;
                          refused.body = "the order is not paid";
                          return said::Refused{refused};
                        }};
  const auto payment = [](const StepContext& context) {
    return "{\"order\":\"" + context.input() + "\",\"amount\":1900}";
  };
  // The mail is staged in the transaction that books the refund: no refund without its mail.
  const LocalStep book{"book", [&orders](const StepContext& context) -> LocalOutcome {
                         orders.book_refund(context.input(), *context.output("pay"));
                         return said::Done{{}, {{"mail/1", "receipt", context.input()}}};
                       }};
  const auto finish = [](const StepContext& context) {
    StoredResult result;
    result.status = 201;
    result.body = *context.output("pay");
    return result;
  };
  // The demo shop plays the mail service, too: an order of a "mail".
  const auto mail = [](const StepContext& context) {
    return "{\"item\":\"mail about " + context.input() + "\",\"amount\":0}";
  };
  return {{"refund", 1, {begin, external("pay", provider, "/payments", payment), book}, finish},
          {"mail", 1, {external("send", provider, "/orders", mail)}, [](const StepContext&) {
             StoredResult sent;
             sent.status = 200;
             return sent;
           }}};
}

int run(const Arguments& arguments, Observer& observer) {
  const auto status = work(arguments, observer);
  if (!status) {
    std::fprintf(stderr, "refund: %s\n", status.error().message.c_str());
    return 1;
  }
  std::printf("refund of %s: %d\n", arguments.order.c_str(), *status);
  return *status == 201 ? 0 : 1;
}

int main_with(int count, char** values, Observer& observer) {
  Arguments arguments;
  std::vector<std::string> words(values + 1, values + count), places;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--honours-keys") {
      arguments.provider.honours_keys = true;
    } else if (words[i] == "--fault" && i + 1 < words.size()) {
      arguments.provider.fault = words[++i];
    } else {
      places.push_back(words[i]);
    }
  }
  if (places.size() != 3) {
    std::fprintf(stderr, "usage: refund DATABASE SHOP_URL ORDER [--honours-keys] [--fault F]\n");
    return 2;
  }
  arguments.database = places[0];
  arguments.provider.url = places[1];
  arguments.order = places[2];
  return run(arguments, observer);
}

}  // namespace einmal::refund
