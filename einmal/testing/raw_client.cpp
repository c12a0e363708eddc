#include "einmal/testing/raw_client.hpp"

#include <utility>

namespace einmal::test {

Incoming RawClient::read_to_end(Milliseconds wait) {
  Incoming all{Incoming::Kind::end, reader_.leftover()};
  while (true) {
    auto next = socket_.read_some(wait);
    all.kind = next.kind;
    if (next.kind != Incoming::Kind::data) return all;
    all.bytes += next.bytes;
  }
}

HttpAnswer HttpClient::send(const HttpRequest& request, Milliseconds wait) const {
  RawClient connection(port_);
  connection.send(request);
  return connection.read_answer(request.method, wait);
}

HttpAnswer HttpClient::get(std::string target, HeaderList headers) const {
  HttpRequest request;
  request.method = "GET";
  request.target = std::move(target);
  request.headers = std::move(headers);
  return send(request);
}

HttpAnswer HttpClient::post(std::string target, std::string body, HeaderList headers) const {
  HttpRequest request;
  request.target = std::move(target);
  request.body = std::move(body);
  request.headers = std::move(headers);
  return send(request);
}

}  // namespace einmal::test
