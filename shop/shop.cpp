#include "shop/shop.hpp"

#include <boost/json.hpp>
#include <boost/url/params_view.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/parse_query.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <string_view>

#include "einmal/base/ids.hpp"
#include "shop/page.hpp"

namespace einmal::shop {

namespace json = boost::json;

namespace {

struct EntryIdTag {};
using EntryId = Id128<EntryIdTag>;

Reply reply(int status, const json::value& body) {
  return {status, {{"Content-Type", "application/json"}}, json::serialize(body) + "\n"};
}

Reply refusal(int status, std::string_view why) { return reply(status, {{"error", why}}); }

Reply broken() { return refusal(500, "the books cannot be used now"); }

json::object as_json(const Entry& entry) {
  json::object object{{"id", entry.id}};
  object[entry.kind == "order" ? "item" : "order"] = entry.item;
  object["amount"] = entry.amount;
  object["currency"] = entry.currency;
  return object;
}

constexpr std::int64_t unreadable = -1;

/// Of this attempt nothing was done, whatever became of the one that replaced it.
Reply stale() {
  auto answer = refusal(409, "a newer attempt was seen; nothing was booked for this one");
  answer.headers.add("Einmal-Outcome", "released");
  return answer;
}

std::string location_of(const Entry& entry) { return "/" + entry.kind + "s/" + entry.id; }

Reply shown(int status, const Entry& entry) {
  auto answer = reply(status, as_json(entry));
  answer.headers.add("Location", location_of(entry));
  return answer;
}

Reply shown_effects(const Effects& effects) {
  json::object by_key;
  for (const auto& [key, count] : effects.by_key) by_key[key] = count;
  return reply(200, {{"count", effects.count}, {"by_key", std::move(by_key)}});
}

Reply listed(const std::string& kind, const std::vector<Entry>& found) {
  json::array entries;
  for (const auto& entry : found) entries.push_back(as_json(entry));
  return reply(200, {{kind + "s", std::move(entries)}});
}

std::string header(const Request& request, std::string_view name) {
  return std::string(request.headers.first(name).value_or(""));
}

/// The key as the shop notes it: without the quotes of the structured form.
std::string key_of(const Request& request) {
  auto key = header(request, "Idempotency-Key");
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
    key = key.substr(1, key.size() - 2);
  return key;
}

bool is_form(const Request& request) {
  return header(request, "Content-Type").rfind("application/x-www-form-urlencoded", 0) == 0;
}
bool wants_page(const Request& request) {
  return header(request, "Accept").find("text/html") != std::string::npos;
}

/// What was made: 201, or for a browser's plain form 303, so that what its person reloads is the
/// GET (POST-redirect-GET, RFC 9110 section 15.4.4).
Reply made(const Request& request, const Entry& entry) {
  auto answer = shown(201, entry);
  if (is_form(request)) {
    answer.headers.add("Vary", "Accept");
    if (wants_page(request)) answer.status = 303;
  }
  return answer;
}

/// The members of a JSON body, or the fields of a form with amount as a number.
std::optional<json::object> body_of(const Request& request) {
  if (!is_form(request)) {
    boost::system::error_code error;
    auto parsed = json::parse(request.body, error);
    if (error || !parsed.is_object()) return std::nullopt;
    return std::move(parsed.as_object());
  }
  if (!boost::urls::parse_query(request.body)) return std::nullopt;
  json::object fields;
  boost::urls::encoding_opts decoding;
  decoding.space_as_plus = true;
  const boost::urls::params_view decoded(request.body, decoding);
  for (const auto& field : decoded) fields[field.key] = field.value;
  // Escapes may spell any bytes; text is what JSON takes for it.
  boost::system::error_code error;
  json::parse(json::serialize(fields), error);
  if (error) return std::nullopt;
  if (const auto* amount = fields.if_contains("amount")) {
    const std::string digits(amount->as_string());
    std::int64_t number = -1;
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (bad == std::errc{} && end == digits.data() + digits.size()) fields["amount"] = number;
  }
  return fields;
}

/// What a body asks for, or why it cannot be read.
struct Wanted {
  Entry entry;
  bool declined = false;
  std::string refused;
};

Wanted wanted(const Request& request, const std::string& kind) {
  Wanted result;
  const auto refuse = [&](std::string why) {
    result.refused = std::move(why);
    return result;
  };
  const auto parsed = body_of(request);
  if (!parsed) return refuse("the body is neither a JSON object nor a form");
  const auto& body = *parsed;
  const auto text = [&](const char* name) {
    const auto* value = body.if_contains(name);
    return value && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  const auto* amount = body.if_contains("amount");
  if (!amount || !amount->is_int64() || amount->as_int64() < 0)
    return refuse("amount: a whole number of the smallest unit is needed");
  result.entry.kind = kind;
  result.entry.amount = amount->as_int64();
  result.entry.item = text(kind == "order" ? "item" : "order");
  result.entry.currency = body.contains("currency") ? text("currency") : "eur";
  result.entry.key = key_of(request);
  if (kind == "order" && result.entry.item.empty())
    return refuse("item: what is ordered is missing");
  if (result.entry.currency.empty()) return refuse("currency: not a text");
  for (const auto* part : {&result.entry.item, &result.entry.currency}) {
    if (part->find('\0') != std::string::npos) return refuse("no text holds a NUL");
  }
  result.declined = text("card") == "declined";
  return result;
}

std::optional<Route> route_of(const std::string& target) {
  const auto url = boost::urls::parse_origin_form(target);
  if (!url) return std::nullopt;
  Route route;
  const auto segments = url->segments();
  if (segments.size() > 2) return std::nullopt;
  auto segment = segments.begin();
  if (segment != segments.end()) route.collection = *segment++;
  if (segment != segments.end()) route.id = *segment;
  for (const auto& param : url->params()) {
    if (param.key == "key") route.key = param.value;
    if (param.key == "item") route.item = param.value;
  }
  return route;
}

constexpr std::string_view books_all =
    "einmal demo shop. It books every request it gets, also the second copy.\n";
constexpr std::string_view books_once =
    "einmal demo shop. It does what carries an Idempotency-Key once.\n";
constexpr std::string_view index_text =
    "  POST /orders   {\"item\", \"amount\", \"currency\"?}     PUT /orders/{uuid}\n"
    "  POST /payments {\"order\", \"amount\", \"card\"?}         card \"declined\": 402\n"
    "  GET, DELETE /orders/{id}   GET /orders?key=K   GET /effects   GET /effects?item=I\n"
    "  In a browser / is a checkout to click. Bodies: JSON, or a form (a browser's is answered "
    "303).\n"
    "  X-Demo-Delay: 2s   X-Demo-Fault: drop-after-commit | drop-before-commit | 500 | 503 | "
    "hang\n";

}  // namespace

std::optional<Steering> steering_of(const Request& request) {
  Steering steering;
  if (const auto delay = header(request, "X-Demo-Delay"); !delay.empty()) {
    long count = 0;
    const auto [end, error] = std::from_chars(delay.data(), delay.data() + delay.size(), count);
    const std::string_view unit(end, static_cast<std::size_t>(delay.data() + delay.size() - end));
    if (error != std::errc{} || count < 0 || count > 3'600'000) return std::nullopt;
    if (unit == "s")
      steering.delay = std::chrono::seconds(count);
    else if (unit == "ms")
      steering.delay = std::chrono::milliseconds(count);
    else
      return std::nullopt;
  }
  static const std::map<std::string, Steering::Fault> faults{
      {"", Steering::Fault::none},
      {"drop-before-commit", Steering::Fault::drop_before_commit},
      {"drop-after-commit", Steering::Fault::drop_after_commit},
      {"500", Steering::Fault::error_500},
      {"503", Steering::Fault::busy_503},
      {"hang", Steering::Fault::hang}};
  const auto fault = faults.find(header(request, "X-Demo-Fault"));
  if (fault == faults.end()) return std::nullopt;
  steering.fault = fault->second;
  return steering;
}

Reply faulty_reply(Steering::Fault fault) {
  if (fault == Steering::Fault::error_500) return refusal(500, "something broke after the booking");
  auto busy = refusal(503, "too busy; nothing was booked");
  busy.headers.add("Retry-After", "1");
  busy.headers.add("Einmal-Outcome", "released");
  return busy;
}

Shop::Shop(Ledger& ledger, Random& random, const Guards& guards)
    : ledger_(ledger), random_(random), fencing_(guards.fencing) {
  if (guards.keys) once_.emplace(ledger, *guards.keys);
}

std::optional<Reply> Shop::handle(const Request& request, const Steering& steering,
                                  const Pause& pause) {
  auto reply = answer(request, steering, pause);
  if (!reply || steering.fault == Steering::Fault::drop_after_commit) return std::nullopt;
  if (steering.fault == Steering::Fault::error_500) return faulty_reply(steering.fault);
  return reply;
}

/// What a request that changes something asks for; empty: no such thing.
std::string operation_of(const std::string& method, const Route& route) {
  const bool orders = route.collection == "orders";
  if (!orders && route.collection != "payments") return {};
  if (method == "POST" && route.id.empty()) return orders ? "create-order" : "pay";
  if (route.id.empty()) return {};
  if (method == "PUT" && orders) return "put-order";
  if (method == "DELETE") return orders ? "delete-order" : "delete-payment";
  return {};
}

std::optional<Reply> Shop::answer(const Request& request, const Steering& steering,
                                  const Pause& pause) {
  using Fault = Steering::Fault;
  const auto route = route_of(request.target);
  if (!route) return refusal(404, "no such page");
  // What happens before the books are touched.
  const auto start = [&] { return pause(steering.delay); };
  const bool busy = steering.fault == Fault::busy_503;
  const bool dropped = steering.fault == Fault::drop_before_commit;
  const auto operation = operation_of(request.method, *route);
  if (operation.empty() || !once_ || !once_->concerns(request)) {
    if (!start() || dropped) return std::nullopt;
    if (busy) return faulty_reply(steering.fault);
    if (operation.empty()) return read(request, *route);
    std::optional<Reply> reply;
    const auto done = ledger_.change([&](Books& books) { reply = change(request, *route, books); });
    return done ? reply : broken();
  }
  return once_->handle(request, operation, [&](Books& books) -> std::optional<Reply> {
    if (!start()) return std::nullopt;
    if (busy) return faulty_reply(steering.fault);
    auto reply = change(request, *route, books);
    return dropped ? std::nullopt : reply;
  });
}

/// What asks for no change, or for one that there is not.
Reply Shop::read(const Request& request, const Route& route) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (reads && route.id.empty()) {
    if (route.collection.empty() && !wants_page(request))
      return {200,
              {{"Content-Type", "text/plain"}, {"Vary", "Accept"}},
              std::string(once_ ? books_once : books_all).append(index_text)};
    if (const auto* file = find_page_file(route.collection))
      return {200, {{"Content-Type", file->type}, {"Vary", "Accept"}}, std::string(file->text)};
  }
  const bool effects = route.collection == "effects" && route.id.empty();
  if (effects && !reads) return refusal(405, "effects can only be read");
  if (!effects && route.collection != "orders" && route.collection != "payments")
    return refusal(404, "no such page");
  if (!reads) return refusal(405, route.id.empty() ? "POST or GET" : "GET, PUT or DELETE");
  if (!effects && route.id.empty() && route.key.empty()) return refusal(400, "say which: ?key=KEY");
  const auto kind = route.collection.substr(0, route.collection.size() - 1);
  Reply reply;
  const auto looked = ledger_.look([&](Books& books) {
    if (effects)
      reply = shown_effects(books.effects(route.item));
    else if (route.id.empty())
      reply = listed(kind, books.with_key(kind, route.key));
    else if (const auto found = books.find(kind, route.id))
      reply = shop::reply(200, as_json(*found));
    else
      reply = refusal(404, "no such " + kind);
  });
  return looked ? reply : broken();
}

std::optional<Reply> Shop::change(const Request& request, const Route& route, Books& books) {
  const auto kind = route.collection.substr(0, route.collection.size() - 1);
  if (request.method == "POST") return post(request, kind, books);
  if (request.method == "PUT") return put(request, route.id, books);
  return books.remove(kind, route.id) ? Reply{204, {}, {}} : refusal(404, "no such " + kind);
}

/// Nothing: not asked to, or the request did not come through einmal.
std::optional<Fence> Shop::fence_of(const Request& request) const {
  const auto digits = header(request, "Einmal-Fencing-Token");
  if (!fencing_ || digits.empty()) return std::nullopt;
  Fence fence;
  const auto key = key_of(request);
  fence.of = key.empty() ? "operation " + header(request, "Einmal-Operation-Id") : "key " + key;
  const auto [end, bad] =
      std::from_chars(digits.data(), digits.data() + digits.size(), fence.token);
  if (bad != std::errc{} || end != digits.data() + digits.size()) fence.token = unreadable;
  return fence;
}

Reply Shop::post(const Request& request, const std::string& kind, Books& books) {
  auto want = wanted(request, kind);
  if (!want.refused.empty()) return refusal(400, want.refused);
  if (want.declined) return refusal(402, "the card was declined");
  want.entry.id = EntryId::draw(random_).text();
  const auto fence = fence_of(request);
  if (fence && fence->token < 0) return refusal(400, "Einmal-Fencing-Token: not a number");
  return books.add(want.entry, fence) ? made(request, want.entry) : stale();
}

Reply Shop::put(const Request& request, const std::string& id, Books& books) {
  const auto uuid = EntryId::from_text(id);
  if (!uuid) return refusal(400, "the order's id must be a UUID");
  auto want = wanted(request, "order");
  if (!want.refused.empty()) return refusal(400, want.refused);
  want.entry.id = uuid->text();
  const auto fence = fence_of(request);
  if (fence && fence->token < 0) return refusal(400, "Einmal-Fencing-Token: not a number");
  const auto done = books.put(want.entry, fence);
  if (done == Books::Put::stale) return stale();
  return shown(done == Books::Put::created ? 201 : 200, want.entry);
}

}  // namespace einmal::shop
