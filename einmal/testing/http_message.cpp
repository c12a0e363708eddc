#include "einmal/testing/http_message.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace einmal::test {

namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

/// Lines after the first of a head (or a trailer section), each `Name: value`.
http::HeaderLines lines_of(std::string_view block) {
  http::HeaderLines lines;
  while (!block.empty()) {
    const auto end = block.find("\r\n");
    const auto line = block.substr(0, end);
    const auto colon = line.find(':');
    if (colon != std::string_view::npos)
      lines.add(std::string(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
    if (end == std::string_view::npos) break;
    block.remove_prefix(end + 2);
  }
  return lines;
}

std::string_view first_line(std::string_view head) { return head.substr(0, head.find("\r\n")); }

std::string_view after_first_line(std::string_view head) {
  const auto end = head.find("\r\n");
  return end == std::string_view::npos ? std::string_view{} : head.substr(end + 2);
}

std::optional<std::size_t> number(std::string_view text, int base) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Ended ended_by(Incoming::Kind kind) {
  if (kind == Incoming::Kind::reset) return Ended::reset;
  return kind == Incoming::Kind::timeout ? Ended::timed_out : Ended::truncated;
}

bool has_body_by_default(const std::string& method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

}  // namespace

std::string HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (http::iequals(key, name)) return value;
  }
  return {};
}

std::size_t HttpRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(),
                    [&](const auto& line) { return http::iequals(line.first, name); }));
}

std::string to_bytes(const HttpRequest& request) {
  std::string bytes = request.method + " " + request.target + " HTTP/1.1\r\n";
  if (request.count("Host") == 0) bytes += "Host: shop.test\r\n";
  for (const auto& [name, value] : request.headers)
    bytes.append(name).append(": ").append(value).append("\r\n");
  const bool framed = request.count("Content-Length") + request.count("Transfer-Encoding") != 0;
  if (!framed && (!request.body.empty() || has_body_by_default(request.method)))
    bytes += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return bytes + "\r\n" + request.body;
}

std::string HttpAnswer::header(std::string_view name) const {
  return std::string(headers.first(name).value_or(std::string_view{}));
}

std::string HttpAnswer::member(std::string_view name) const {
  const auto at = body.find("\"" + std::string(name) + "\"");
  if (at == std::string::npos) return {};
  auto start = body.find_first_not_of(" \t\r\n:", at + name.size() + 2);
  if (start == std::string::npos) return {};
  if (body[start] == '"') return body.substr(start + 1, body.find('"', start + 1) - start - 1);
  return body.substr(start, body.find_first_of(",}] \r\n", start) - start);
}

Incoming::Kind MessageReader::fill(Milliseconds wait) {
  auto incoming = socket_.read_some(wait);
  if (incoming.kind == Incoming::Kind::data) {
    received_ += incoming.bytes.size();
    buffer_ += incoming.bytes;
    if (seen_ && !seen_(received_)) return Incoming::Kind::end;
  }
  return incoming.kind;
}

bool MessageReader::need(std::size_t bytes, Milliseconds wait, Ended& why) {
  while (buffer_.size() < bytes) {
    if (const auto kind = fill(wait); kind != Incoming::Kind::data) {
      why = ended_by(kind);
      return false;
    }
  }
  return true;
}

bool MessageReader::read_head(std::string& head, Milliseconds wait, Ended& why) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!need(buffer_.size() + 1, wait, why)) return false;
  }
  head = buffer_.substr(0, end + 4);
  buffer_.erase(0, end + 4);
  return true;
}

void MessageReader::read_chunks(HttpAnswer& into, Milliseconds wait) {
  while (true) {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!need(buffer_.size() + 1, wait, into.ended)) return;
    }
    const auto line = std::string_view(buffer_).substr(0, end);
    const auto size = number(trim(line.substr(0, line.find(';'))), 16);
    if (!size) {
      into.ended = Ended::unreadable;
      return;
    }
    if (*size == 0) break;
    if (!need(end + 2 + *size + 2, wait, into.ended)) {
      into.body += buffer_.substr(std::min(end + 2, buffer_.size()), *size);
      return;
    }
    into.body += buffer_.substr(end + 2, *size);
    buffer_.erase(0, end + 2 + *size + 2);
  }
  buffer_.erase(0, buffer_.find("\r\n"));  // Leaves CRLF: an empty trailer section ends at once.
  std::string section;
  if (!need(4, wait, into.ended)) return;
  if (!read_head(section, wait, into.ended)) return;
  into.trailers = lines_of(std::string_view(section).substr(2));
  into.ended = Ended::whole;
}

void MessageReader::read_body(const http::HeaderLines& headers, bool until_close, HttpAnswer& into,
                              Milliseconds wait) {
  if (headers.has_token("Transfer-Encoding", "chunked")) return read_chunks(into, wait);
  if (const auto length = headers.first("Content-Length")) {
    const auto size = number(*length, 10);
    if (!size) {
      into.ended = Ended::unreadable;
      return;
    }
    const bool whole = need(*size, wait, into.ended);
    into.body = buffer_.substr(0, *size);
    buffer_.erase(0, *size);
    if (whole) into.ended = Ended::whole;
    return;
  }
  if (!until_close) {
    into.ended = Ended::whole;
    return;
  }
  auto kind = Incoming::Kind::data;
  while (kind == Incoming::Kind::data) kind = fill(wait);
  into.body = std::exchange(buffer_, {});
  into.ended = kind == Incoming::Kind::end ? Ended::whole : ended_by(kind);
}

HttpAnswer MessageReader::read_answer(std::string_view method, Milliseconds wait) {
  HttpAnswer answer;
  std::string head;
  while (true) {
    if (!read_head(head, wait, answer.ended)) {
      answer.head_bytes = buffer_;
      return answer;
    }
    const auto line = first_line(head);
    const auto status = line.size() >= 12 ? number(line.substr(9, 3), 10) : std::nullopt;
    if (!line.starts_with("HTTP/1.") || !status) {
      answer.head_bytes = head;
      answer.ended = Ended::unreadable;
      return answer;
    }
    answer.status = static_cast<int>(*status);
    answer.reason = std::string(line.size() > 13 ? line.substr(13) : std::string_view{});
    if (answer.status >= 200 || answer.status == 101) break;
    answer.interim.push_back(head);
  }
  answer.head_bytes = head;
  answer.headers = lines_of(after_first_line(std::string_view(head).substr(0, head.size() - 2)));
  if (method == "HEAD" || answer.status == 204 || answer.status == 304 || answer.status == 101) {
    answer.ended = Ended::whole;
  } else {
    read_body(answer.headers, true, answer, wait);
  }
  return answer;
}

bool MessageReader::read_request(HttpRequest& request, const Seen& seen) {
  seen_ = seen;
  received_ = buffer_.size();
  Ended why = Ended::truncated;
  std::string head;
  if (!buffer_.empty() && seen_ && !seen_(received_)) return false;
  if (!read_head(head, patience * 10, why)) return false;
  const auto line = first_line(head);
  const auto one = line.find(' ');
  const auto two = line.rfind(' ');
  if (one == std::string_view::npos || two == one) return false;
  request = {};
  request.method = std::string(line.substr(0, one));
  request.target = std::string(line.substr(one + 1, two - one - 1));
  const auto lines = lines_of(after_first_line(std::string_view(head).substr(0, head.size() - 2)));
  for (const auto& each : lines) request.headers.emplace_back(each.name, each.value);
  request.head_bytes = head;
  HttpAnswer body;
  read_body(lines, false, body, patience);
  request.body = std::move(body.body);
  request.trailers = std::move(body.trailers);
  return body.ended == Ended::whole;
}

}  // namespace einmal::test
