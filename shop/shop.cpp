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

Reply broken(const Error& error) { return refusal(500, error.message); }

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
  answer.headers.emplace_back("Einmal-Outcome", "released");
  return answer;
}

std::string location_of(const Entry& entry) { return "/" + entry.kind + "s/" + entry.id; }

Reply shown(int status, const Entry& entry) {
  auto answer = reply(status, as_json(entry));
  answer.headers.emplace_back("Location", location_of(entry));
  return answer;
}

std::string header(const Request& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string() : found->second;
}

/// The key as the shop notes it: without the quotes of the structured form.
std::string key_of(const Request& request) {
  auto key = header(request, "idempotency-key");
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
    key = key.substr(1, key.size() - 2);
  return key;
}

bool is_form(const Request& request) {
  return header(request, "content-type").rfind("application/x-www-form-urlencoded", 0) == 0;
}
bool wants_page(const Request& request) {
  return header(request, "accept").find("text/html") != std::string::npos;
}

/// What was made: 201, or for a browser's plain form 303, so that what its person reloads is the
/// GET (POST-redirect-GET, RFC 9110 section 15.4.4).
Reply made(const Request& request, const Entry& entry) {
  auto answer = shown(201, entry);
  if (is_form(request)) {
    answer.headers.emplace_back("Vary", "Accept");
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
  result.declined = text("card") == "declined";
  return result;
}

struct Route {
  std::string collection, id, key, item;
};

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

constexpr std::string_view index_text =
    "einmal demo shop. It books every request it gets, also the second copy.\n"
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
  if (const auto delay = header(request, "x-demo-delay"); !delay.empty()) {
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
  const auto fault = faults.find(header(request, "x-demo-fault"));
  if (fault == faults.end()) return std::nullopt;
  steering.fault = fault->second;
  return steering;
}

Reply faulty_reply(Steering::Fault fault) {
  if (fault == Steering::Fault::error_500) return refusal(500, "something broke after the booking");
  auto busy = refusal(503, "too busy; nothing was booked");
  busy.headers.emplace_back("Retry-After", "1");
  busy.headers.emplace_back("Einmal-Outcome", "released");
  return busy;
}

Reply Shop::handle(const Request& request) {
  const auto route = route_of(request.target);
  if (!route) return refusal(404, "no such page");
  const auto& method = request.method;
  const bool reads = method == "GET" || method == "HEAD";
  if (reads && route->id.empty()) {
    if (route->collection.empty() && !wants_page(request))
      return {200, {{"Content-Type", "text/plain"}, {"Vary", "Accept"}}, std::string(index_text)};
    if (const auto* file = find_page_file(route->collection))
      return {200, {{"Content-Type", file->type}, {"Vary", "Accept"}}, std::string(file->text)};
  }
  if (route->collection == "effects" && route->id.empty()) {
    return reads ? effects(route->item) : refusal(405, "effects can only be read");
  }
  if (route->collection != "orders" && route->collection != "payments")
    return refusal(404, "no such page");
  const auto kind = route->collection.substr(0, route->collection.size() - 1);
  if (route->id.empty()) {
    if (method == "POST") return post(request, kind);
    if (reads) return list(kind, route->key);
    return refusal(405, "POST or GET");
  }
  if (method == "PUT" && kind == "order") return put(request, route->id);
  if (reads || method == "DELETE") return one(method, kind, route->id);
  return refusal(405, "GET, PUT or DELETE");
}

/// Nothing: not asked to, or the request did not come through einmal.
std::optional<Fence> Shop::fence_of(const Request& request) const {
  const auto digits = header(request, "einmal-fencing-token");
  if (!guards_.fencing || digits.empty()) return std::nullopt;
  Fence fence;
  const auto key = key_of(request);
  fence.of = key.empty() ? "operation " + header(request, "einmal-operation-id") : "key " + key;
  const auto [end, bad] =
      std::from_chars(digits.data(), digits.data() + digits.size(), fence.token);
  if (bad != std::errc{} || end != digits.data() + digits.size()) fence.token = unreadable;
  return fence;
}

Reply Shop::post(const Request& request, const std::string& kind) {
  auto want = wanted(request, kind);
  if (!want.refused.empty()) return refusal(400, want.refused);
  if (want.declined) return refusal(402, "the card was declined");
  want.entry.id = EntryId::draw(random_).text();
  const auto fence = fence_of(request);
  if (fence && fence->token < 0) return refusal(400, "Einmal-Fencing-Token: not a number");
  const auto added = guards_.idempotent && !want.entry.key.empty()
                         ? ledger_.add_once(want.entry, fence)
                         : ledger_.add(want.entry, fence);
  if (!added) return broken(added.error());
  if (std::holds_alternative<Ledger::Stale>(*added)) return stale();
  const auto* there = std::get_if<Entry>(&*added);
  if (!there) return made(request, want.entry);
  want.entry.id = there->id;
  return want.entry == *there ? made(request, *there)
                              : refusal(422, "this key was used for another request");
}

Reply Shop::put(const Request& request, const std::string& id) {
  const auto uuid = EntryId::from_text(id);
  if (!uuid) return refusal(400, "the order's id must be a UUID");
  auto want = wanted(request, "order");
  if (!want.refused.empty()) return refusal(400, want.refused);
  want.entry.id = uuid->text();
  const auto fence = fence_of(request);
  if (fence && fence->token < 0) return refusal(400, "Einmal-Fencing-Token: not a number");
  const auto done = ledger_.put(want.entry, fence);
  if (!done) return broken(done.error());
  if (*done == Ledger::Put::stale) return stale();
  return shown(*done == Ledger::Put::created ? 201 : 200, want.entry);
}

Reply Shop::list(const std::string& kind, const std::string& key) {
  if (key.empty()) return refusal(400, "say which: ?key=KEY");
  const auto found = ledger_.with_key(kind, key);
  if (!found) return broken(found.error());
  json::array entries;
  for (const auto& entry : *found) entries.push_back(as_json(entry));
  return reply(200, {{kind + "s", std::move(entries)}});
}

Reply Shop::one(const std::string& method, const std::string& kind, const std::string& id) {
  if (method == "DELETE") {
    const auto removed = ledger_.remove(kind, id);
    if (!removed) return broken(removed.error());
    return *removed ? Reply{204, {}, {}} : refusal(404, "no such " + kind);
  }
  const auto found = ledger_.find(kind, id);
  if (!found) return broken(found.error());
  return *found ? reply(200, as_json(**found)) : refusal(404, "no such " + kind);
}

Reply Shop::effects(const std::string& item) {
  const auto effects = ledger_.effects(item);
  if (!effects) return broken(effects.error());
  json::object by_key;
  for (const auto& [key, count] : effects->by_key) by_key[key] = count;
  return reply(200, {{"count", effects->count}, {"by_key", std::move(by_key)}});
}

}  // namespace einmal::shop
