// An order service whose POST /orders happens once per caller and Idempotency-Key: the claim, the
// order and the stored answer commit in one PostgreSQL transaction, so there is no state in
// between.
//
//   einmal migrate --store "$DATABASE_URL"; psql "$DATABASE_URL" -f orders.sql
//   DATABASE_URL=postgresql://... einmal_order_service          port 0 picks one and prints it

#include <libpq-fe.h>
#include <openssl/sha.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "einmal/base/random.hpp"
#include "einmal/postgres/postgres_session.hpp"
#include "einmal/store/run_in_transaction.hpp"

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace json = boost::json;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

struct Close {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};

/// Equal for equal orders, whatever the order of their members.
einmal::Fingerprint fingerprint(const json::object& order) {
  std::map<std::string, std::string> members;
  for (const auto& member : order) members[member.key()] = json::serialize(member.value());
  std::string text;
  for (const auto& [name, value] : members) text += json::serialize(name) + value;
  einmal::Fingerprint fingerprint;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         fingerprint.digest.data());
  return fingerprint;
}

/// What the service itself does, in the transaction that run_in_transaction has begun.
einmal::HandlerOutcome create_order(PGconn* connection, const std::string& caller,
                                    json::object order) {
  einmal::StoredResult result;
  if (order.contains("card") && order["card"] == "declined") {
    result.status = 402;
    result.body = R"({"error":"card declined"})";
    return einmal::handled::Failed{result};
  }
  const std::string item(order.at("item").as_string());
  const std::string amount = std::to_string(order.at("amount").as_int64());
  const char* values[] = {caller.c_str(), item.c_str(), amount.c_str()};
  const std::unique_ptr<PGresult, void (*)(PGresult*)> inserted(
      PQexecParams(connection,
                   "insert into orders (caller, item, amount) values ($1, $2, $3) returning id", 3,
                   nullptr, values, nullptr, nullptr, 0),
      PQclear);
  if (PQresultStatus(inserted.get()) != PGRES_TUPLES_OK)
    throw std::runtime_error(PQerrorMessage(connection));
  order["id"] = std::atoll(PQgetvalue(inserted.get(), 0, 0));
  result.status = 201;
  result.body = json::serialize(order);
  return einmal::handled::Completed{result};
}

Response answer(int status, std::string body) {
  Response response(static_cast<http::status>(status), 11, std::move(body));
  response.set(http::field::content_type, "application/json");
  response.prepare_payload();
  return response;
}

struct ToAnswer {
  Response operator()(const einmal::ran::Executed& ran) const {
    return answer(ran.result.status, ran.result.body);
  }
  Response operator()(const einmal::ran::Replayed& ran) const {
    Response response = answer(ran.result.status, ran.result.body);
    response.set("Idempotent-Replayed", "true");
    return response;
  }
  Response operator()(const einmal::ran::Mismatch&) const {
    return answer(422, R"({"reason":"key-reused"})");
  }
  Response operator()(const einmal::ran::OtherProfile&) const {
    return answer(422, R"({"reason":"key-reused"})");
  }
  Response operator()(const einmal::ran::InProgress&) const {
    return answer(409, R"({"reason":"in-progress"})");
  }
  template <class Other>  // gone, uncertain, released: this service makes none of them
  Response operator()(const Other&) const {
    return answer(410, R"({"reason":"key-expired"})");
  }
};

Response handle(PGconn* connection, const Request& request) {
  if (request.method() != http::verb::post || request.target() != "/orders") return answer(404, "");
  // In a real service the caller is who the request has been authenticated as, never what it says.
  const std::string caller = request["X-Caller"];
  if (caller.empty()) return answer(401, R"({"reason":"caller-missing"})");
  auto scope = einmal::Scope::make("app", caller, "create-order", request["Idempotency-Key"]);
  if (!scope) return answer(400, R"({"reason":"key-invalid"})");
  boost::system::error_code wrong;
  const json::value order = json::parse(request.body(), wrong);
  if (wrong || !order.is_object()) return answer(400, R"({"reason":"body-unusable"})");

  einmal::SystemRandom random;
  const auto session = einmal::postgres_session(connection, random);
  const auto ran = einmal::run_in_transaction(
      *session, {*scope, fingerprint(order.as_object()), {}},
      [&](const einmal::Attempt&) { return create_order(connection, caller, order.as_object()); });
  return ran ? std::visit(ToAnswer{}, *ran) : answer(503, R"({"reason":"store-unavailable"})");
}

void serve(asio::ip::tcp::socket socket) {
  const char* database = std::getenv("DATABASE_URL");
  const std::unique_ptr<PGconn, Close> connection(PQconnectdb(database ? database : ""));
  boost::beast::flat_buffer buffer;
  boost::system::error_code ended;
  while (!ended) {
    Request request;
    http::read(socket, buffer, request, ended);
    if (ended) break;
    Response response = answer(503, R"({"reason":"store-unavailable"})");
    if (PQstatus(connection.get()) != CONNECTION_OK) PQreset(connection.get());
    try {
      response = handle(connection.get(), request);
    } catch (const std::exception& error) {  // everything was undone: the same key may come again
      std::cerr << error.what() << '\n';
    }
    http::write(socket, response, ended);
  }
}

int main() {
  const char* port = std::getenv("PORT");
  asio::io_context context;
  asio::ip::tcp::acceptor acceptor(context,
                                   {asio::ip::make_address("127.0.0.1"),
                                    static_cast<unsigned short>(port ? std::atoi(port) : 0)});
  std::cout << "listening on http://127.0.0.1:" << acceptor.local_endpoint().port() << std::endl;
  while (true) std::thread(serve, acceptor.accept()).detach();
}
