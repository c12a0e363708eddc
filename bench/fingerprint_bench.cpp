// What a request's fingerprint costs. Bytes a second are bytes of the body.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <variant>

#include "einmal/fingerprint/canonical_json.hpp"
#include "einmal/fingerprint/canonical_writer.hpp"
#include "einmal/fingerprint/fingerprint.hpp"
#include "einmal/fingerprint/target.hpp"

namespace einmal {
namespace {

/// An order as shops send it: `lines` lines of about 180 bytes, members in no particular order.
std::string order(int lines) {
  std::string text = R"({
  "order_id": "0197c7e4-2f7b-7d4e-9d0e-52fd3a9f0c11", "currency": "EUR", "total": 1289.90,
  "customer": {"name": "J\u00f6rg M\u00fcller", "email": "joerg@shop.example", "vat": null,
    "address": {"street": "Lange Gasse 12", "zip": "79098", "city": "Freiburg", "country": "DE"}},
  "express": false, "created": "2024-11-05T08:15:30Z",
  "items": [)";
  for (int i = 0; i < lines; ++i) {
    const std::string n = std::to_string(1000 + i);
    text += (i == 0 ? "\n" : ",\n");
    text += R"(    {"sku": "A-)" + n + R"(-XL", "title": "Wool jumper, dark blue, size )" + n +
            R"(", "quantity": )" + std::to_string(1 + i % 5) + R"(, "unit_price": )" + n +
            R"(.95, "tax": {"rate": 0.19, "code": "DE-STD"}, "gift": true, "tags": ["a", "b"]})";
  }
  return text + "\n  ]\n}";
}

const FingerprintProfile& plain_profile() {
  static const FingerprintProfile profile = FingerprintProfile::make({}).value();
  return profile;
}

FingerprintProfile profile_with_options() {
  FingerprintOptions options;
  options.headers = {"X-Currency"};
  options.ignore = {"/created", "/customer/vat"};
  options.defaults = {{"/currency", "\"usd\""}};
  return FingerprintProfile::make(std::move(options)).value();
}

http::HeaderLines usual_headers(const char* content_type) {
  http::HeaderLines headers;
  headers.add("Host", "api.example");
  headers.add("User-Agent", "shop/1.2");
  headers.add("Accept", "*/*");
  headers.add("Content-Type", content_type);
  headers.add("Content-Length", "2048");
  headers.add("Idempotency-Key", "8e03978e-40d5-43e8-bc93-6894a57f9324");
  headers.add("X-Caller", "acct-1");
  headers.add("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  return headers;
}

void run(benchmark::State& state, const FingerprintProfile& profile, const char* content_type,
         const std::string& body) {
  const http::HeaderLines headers = usual_headers(content_type);
  const FingerprintInput input{"POST", "create-order", "api.example", "/orders", headers, body};
  if (std::holds_alternative<Unusable>(fingerprint(profile, input))) {
    state.SkipWithError("the sample body is unusable");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(fingerprint(profile, input));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
  state.counters["body"] = static_cast<double>(body.size());
}

void json_body(benchmark::State& state) {
  run(state, plain_profile(), "application/json", order(static_cast<int>(state.range(0))));
}
BENCHMARK(json_body)->Arg(0)->Arg(8)->Arg(100)->Arg(5000);

void json_body_with_options(benchmark::State& state) {
  run(state, profile_with_options(), "application/json", order(8));
}
BENCHMARK(json_body_with_options);

void json_body_of_numbers(benchmark::State& state) {
  std::string text = "[";
  for (int i = 0; i < 300; ++i) text += std::to_string(i * 7919) + "." + std::to_string(i) + ",";
  text.back() = ']';
  run(state, plain_profile(), "application/json", text);
}
BENCHMARK(json_body_of_numbers);

void raw_body(benchmark::State& state) {
  run(state, plain_profile(), "application/octet-stream",
      std::string(static_cast<std::size_t>(state.range(0)), 'x'));
}
BENCHMARK(raw_body)->Arg(0)->Arg(2048)->Arg(1 << 20);

void form_body(benchmark::State& state) {
  std::string body;
  for (int i = 99; i >= 10; --i) body += "field" + std::to_string(i) + "=some+value%20here&";
  run(state, plain_profile(), "application/x-www-form-urlencoded", body);
}
BENCHMARK(form_body);

void multipart_body(benchmark::State& state) {
  const std::string file(300'000, '\r');
  run(state, plain_profile(), "multipart/form-data; boundary=b",
      "--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\n" + file + "\r\n--b--\r\n");
}
BENCHMARK(multipart_body);

void sha256_alone(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(sha256(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sha256_alone)->Arg(64)->Arg(2048)->Arg(1 << 20);

void rfc8785_text(benchmark::State& state) {
  const std::string text = order(8);
  for (auto _ : state) {
    benchmark::DoNotOptimize(canonical_json(text, JsonNumbers::ieee_double));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(rfc8785_text);

void path_of_a_target(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(canonical_path("/orders/8e03978e/refunds?x=1"));
}
BENCHMARK(path_of_a_target);

}  // namespace
}  // namespace einmal
