#include "einmal/gateway/forward.hpp"

#include <algorithm>

#include "einmal/http/write.hpp"

namespace einmal::gateway {

namespace {

bool always_hop_by_hop(std::string_view name) {
  switch (name.size()) {
    case 2:
      return http::iequals(name, "TE");
    case 7:
      return http::iequals(name, "Upgrade");
    case 10:
      return http::iequals(name, "Connection") || http::iequals(name, "Keep-Alive");
    case 16:
      return http::iequals(name, "Proxy-Connection");
    case 17:
      return http::iequals(name, "Transfer-Encoding");
    default:
      return false;
  }
}

void append_line(std::string& out, const http::HeaderLine& line) {
  out.append(line.name).append(": ").append(line.value).append("\r\n");
}

void append_upgrade(std::string& out, const http::HeaderLines& headers) {
  out.append("Connection: upgrade\r\n");
  for (const auto line : headers) {
    if (http::iequals(line.name, "Upgrade")) append_line(out, line);
  }
}

std::string_view status_digits(int status, std::array<char, 3>& digits) {
  digits = {static_cast<char>('0' + status / 100), static_cast<char>('0' + status / 10 % 10),
            static_cast<char>('0' + status % 10)};
  return {digits.data(), digits.size()};
}

}  // namespace

HopByHop::HopByHop(const http::HeaderLines& headers) {
  for (const auto line : headers) {
    if (line.name.size() != 10 || !http::iequals(line.name, "Connection")) continue;
    auto rest = line.value;
    while (const auto name = http::next_list_element(rest)) {
      if (!http::iequals(*name, "keep-alive") && !http::iequals(*name, "close"))
        named_.push_back(*name);
    }
  }
}

bool HopByHop::contains(std::string_view name) const {
  return always_hop_by_hop(name) || is_internal(name) ||
         std::any_of(named_.begin(), named_.end(),
                     [&](std::string_view named) { return http::iequals(named, name); });
}

bool is_internal(std::string_view name) {
  return name.size() > 7 && (name[6] == '-' || name[6] == '_') &&
         http::iequals(name.substr(0, 6), "einmal");
}

bool asks_upgrade(const http::HeaderLines& headers) {
  return headers.has("Upgrade") && headers.has_token("Connection", "upgrade");
}

void append_forwarded(std::string& out, const http::RequestHead& head, http::Framing framing,
                      bool close_after) {
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  const HopByHop dropped(head.headers);
  for (const auto line : head.headers) {
    if (!dropped.contains(line.name)) append_line(out, line);
  }
  if (framing == http::Framing::chunked) out.append("Transfer-Encoding: chunked\r\n");
  if (asks_upgrade(head.headers)) {
    append_upgrade(out, head.headers);
  } else if (close_after) {
    out.append("Connection: close\r\n");
  }
  out.append("\r\n");
}

void append_forwarded(std::string& out, const http::ResponseHead& head,
                      const AnswerFraming& framing) {
  std::array<char, 3> digits;
  out.append("HTTP/1.1 ").append(status_digits(head.status, digits)).append(" ");
  out.append(head.reason).append("\r\n");
  const HopByHop dropped(head.headers);
  for (const auto line : head.headers) {
    if (!dropped.contains(line.name)) append_line(out, line);
  }
  if (head.status == 101) {
    append_upgrade(out, head.headers);
    out.append("\r\n");
    return;
  }
  append_end_of_head(out, framing);
}

void append_end_of_head(std::string& out, const AnswerFraming& framing) {
  if (framing.chunked) out.append("Transfer-Encoding: chunked\r\n");
  if (framing.close) {
    out.append("Connection: close\r\n");
  } else if (framing.name_keep_alive) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

}  // namespace einmal::gateway
