#include "einmal/gateway/operation_document.hpp"

#include <array>
#include <ctime>

#include "einmal/gateway/json_writer.hpp"

namespace einmal::gateway {

namespace {

std::string rfc3339(WallTime time) {
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::floor<std::chrono::seconds>(time).time_since_epoch())
                                  .count();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), size};
}

std::string_view state_name(Condition condition) {
  switch (condition) {
    case Condition::processing:
      return "processing";
    case Condition::completed:
      return "completed";
    case Condition::failed:
      return "failed";
    default:
      return "uncertain";
  }
}

void optional_time(JsonWriter& json, std::string_view name, const std::optional<WallTime>& time) {
  json.member(name);
  if (time) {
    json.text(rfc3339(*time));
  } else {
    json.null();
  }
}

std::string describe(const StoredRecord& stored) {
  const Record& record = stored.record;
  JsonWriter json;
  json.begin_object();
  json.member("id").text(record.operation_id.text());
  json.member("state").text(state_name(stored.condition));
  json.member("operation").text(stored.scope.operation());
  json.member("created").text(rfc3339(record.created));
  optional_time(json, "settled", record.settled);
  optional_time(json, "expires", record.expires);
  json.member("attempts").number(record.attempts);
  json.end_object();
  return json.out() + "\n";
}

}  // namespace

Async<> answer_operation(ClientConnection& client, const StoredRecord& stored) {
  const std::string body = describe(stored);
  http::ResponseHead head;
  head.status = 200;
  head.headers.add("Content-Type", "application/json");
  head.headers.add("Cache-Control", "no-store");
  const bool is_final =
      stored.condition == Condition::completed || stored.condition == Condition::failed;
  if (!is_final) head.headers.add("Retry-After", "1");
  head.headers.add("Content-Length", std::to_string(body.size()));
  co_await client.answer(head, body);
}

}  // namespace einmal::gateway
