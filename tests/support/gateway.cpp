#include "support/gateway.hpp"

#include <charconv>
#include <fstream>
#include <future>
#include <stdexcept>

namespace einmal::test {

namespace {

/// Each process of one test gets a configuration file of its own.
std::string next_name() {
  static int count = 0;
  return "gateway" + std::to_string(++count);
}

}  // namespace

GatewayProcess::GatewayProcess(std::string directory, GatewaySetup setup)
    : directory_(std::move(directory)), name_(next_name()), setup_(std::move(setup)) {
  if (setup_.store.empty()) setup_.store = new_store(directory_);
}

std::string GatewayProcess::config() const {
  return "[gateway]\nlisten = \"127.0.0.1:0\"\nupstream = \"" + setup_.upstream + "\"\n" +
         setup_.gateway + "\n[store]\nurl = \"" + setup_.store + "\"\n" + setup_.store_lines +
         "[caller]\nsource = \"" + setup_.caller + "\"\n" + setup_.caller_lines + "[limits]\n" +
         setup_.limits + "\n[defaults]\n" + setup_.defaults + "\n" + setup_.operations;
}

void GatewayProcess::start(ChildProcess::Environment environment) {
  std::ofstream(config_file()) << config();
  std::vector<std::string> command{sibling_program("einmal_killable"), "gateway", "--config",
                                   config_file()};
  if (file_limit_kib_ != 0) {  // In units of 512 bytes (POSIX sh).
    const auto limit =
        "ulimit -f " + std::to_string(2 * file_limit_kib_) + " && exec \"$0\" \"$@\"";
    command.insert(command.begin(), {"/bin/sh", "-c", limit});
  }
  process_ = std::make_unique<ChildProcess>(std::move(command), std::move(environment));
  const auto line = process_->wait_for_line("listening on http");
  if (!line) throw std::runtime_error("the gateway did not start: " + process_->errors());
  const auto digits = line->substr(line->rfind(':') + 1);
  port_ = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), port_);
}

void GatewayTest::open(GatewaySetup setup) {
  if (setup.upstream.empty()) setup.upstream = upstream_.url();
  gateway_ = std::make_unique<GatewayProcess>(directory_.path().string(), std::move(setup));
  gateway_->start();
}

std::unique_ptr<GatewayProcess> GatewayTest::another() {
  auto process = std::make_unique<GatewayProcess>(directory_.path().string(), gateway_->setup());
  process->start();
  return process;
}

HttpRequest GatewayTest::order(std::string_view key, std::string body, HeaderList headers) {
  HttpRequest request;
  request.headers = {{"X-Caller", "alice"}, {"Content-Type", "application/json"}};
  if (!key.empty()) request.headers.emplace_back("Idempotency-Key", std::string(key));
  for (auto& line : headers) request.headers.push_back(std::move(line));
  request.body = std::move(body);
  return request;
}

std::vector<HttpAnswer> GatewayTest::send_at_once(const HttpRequest& request, std::size_t n,
                                                  const std::vector<std::uint16_t>& ports) {
  std::vector<std::future<HttpAnswer>> sent;
  for (std::size_t i = 0; i < n; ++i) {
    sent.push_back(std::async(std::launch::async, [&request, port = ports[i % ports.size()]] {
      return HttpClient(port).send(request);
    }));
  }
  std::vector<HttpAnswer> answers;
  for (auto& each : sent) answers.push_back(each.get());
  return answers;
}

HttpAnswer GatewayTest::send_until_decided(const HttpRequest& request) const {
  HttpAnswer answer;
  eventually([&] {
    answer = send(request);
    return answer.status != 409;
  });
  return answer;
}

std::string status_of(const HttpAnswer& answer) { return answer.header("Idempotency-Status"); }

std::string reason_of(const HttpAnswer& answer) {
  return answer.header("Content-Type").starts_with("application/problem+json")
             ? answer.member("reason")
             : std::string();
}

std::string in_words(const HttpAnswer& answer) {
  std::string words = std::to_string(answer.status);
  if (const auto status = status_of(answer); !status.empty()) words += " " + status;
  if (const auto reason = reason_of(answer); !reason.empty()) words += " " + reason;
  if (!answer.is_whole()) words += " (broken off)";
  return words;
}

}  // namespace einmal::test
