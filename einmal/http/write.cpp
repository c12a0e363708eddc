#include "einmal/http/write.hpp"

#include <algorithm>

namespace einmal::http {

namespace {

struct Phrase {
  int status;
  std::string_view text;
};
// IANA HTTP Status Code Registry.
constexpr Phrase phrases[] = {{100, "Continue"},
                              {101, "Switching Protocols"},
                              {102, "Processing"},
                              {103, "Early Hints"},
                              {200, "OK"},
                              {201, "Created"},
                              {202, "Accepted"},
                              {203, "Non-Authoritative Information"},
                              {204, "No Content"},
                              {205, "Reset Content"},
                              {206, "Partial Content"},
                              {207, "Multi-Status"},
                              {208, "Already Reported"},
                              {226, "IM Used"},
                              {300, "Multiple Choices"},
                              {301, "Moved Permanently"},
                              {302, "Found"},
                              {303, "See Other"},
                              {304, "Not Modified"},
                              {305, "Use Proxy"},
                              {307, "Temporary Redirect"},
                              {308, "Permanent Redirect"},
                              {400, "Bad Request"},
                              {401, "Unauthorized"},
                              {402, "Payment Required"},
                              {403, "Forbidden"},
                              {404, "Not Found"},
                              {405, "Method Not Allowed"},
                              {406, "Not Acceptable"},
                              {407, "Proxy Authentication Required"},
                              {408, "Request Timeout"},
                              {409, "Conflict"},
                              {410, "Gone"},
                              {411, "Length Required"},
                              {412, "Precondition Failed"},
                              {413, "Content Too Large"},
                              {414, "URI Too Long"},
                              {415, "Unsupported Media Type"},
                              {416, "Range Not Satisfiable"},
                              {417, "Expectation Failed"},
                              {421, "Misdirected Request"},
                              {422, "Unprocessable Content"},
                              {423, "Locked"},
                              {424, "Failed Dependency"},
                              {425, "Too Early"},
                              {426, "Upgrade Required"},
                              {428, "Precondition Required"},
                              {429, "Too Many Requests"},
                              {431, "Request Header Fields Too Large"},
                              {451, "Unavailable For Legal Reasons"},
                              {500, "Internal Server Error"},
                              {501, "Not Implemented"},
                              {502, "Bad Gateway"},
                              {503, "Service Unavailable"},
                              {504, "Gateway Timeout"},
                              {505, "HTTP Version Not Supported"},
                              {506, "Variant Also Negotiates"},
                              {507, "Insufficient Storage"},
                              {508, "Loop Detected"},
                              {511, "Network Authentication Required"}};

std::size_t size_of(const HeaderLines& headers) {
  std::size_t size = 2;
  for (const auto& line : headers) size += line.name.size() + line.value.size() + 4;
  return size;
}

void append_lines(std::string& out, const HeaderLines& headers) {
  for (const auto& line : headers) {
    out.append(line.name).append(": ").append(line.value).append("\r\n");
  }
  out.append("\r\n");
}

// reserve() to the exact size on a buffer that is appended to again and again would copy each time.
void make_room(std::string& out, std::size_t more) {
  if (out.capacity() - out.size() < more) {
    out.reserve(std::max(out.size() + more, 2 * out.capacity()));
  }
}

}  // namespace

void append_head(std::string& out, const RequestHead& head) {
  make_room(out, head.method.size() + head.target.size() + 12 + size_of(head.headers));
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  append_lines(out, head.headers);
}

void append_head(std::string& out, const ResponseHead& head) {
  const auto reason = head.reason.empty() ? reason_phrase(head.status) : head.reason;
  make_room(out, reason.size() + 15 + size_of(head.headers));
  const char status[] = {static_cast<char>('0' + head.status / 100 % 10),
                         static_cast<char>('0' + head.status / 10 % 10),
                         static_cast<char>('0' + head.status % 10), ' '};
  out.append("HTTP/1.1 ").append(status, sizeof status).append(reason).append("\r\n");
  append_lines(out, head.headers);
}

std::string_view reason_phrase(int status) {
  const auto* found = std::lower_bound(std::begin(phrases), std::end(phrases), status,
                                       [](const Phrase& p, int s) { return p.status < s; });
  return found != std::end(phrases) && found->status == status ? found->text : std::string_view();
}

ChunkHead::ChunkHead(std::uint64_t size) : at_(text_.size()) {
  text_[--at_] = '\n';
  text_[--at_] = '\r';
  do {
    text_[--at_] = "0123456789abcdef"[size & 15];
    size >>= 4;
  } while (size != 0);
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  const ChunkHead head(data.size());
  make_room(out, head.view().size() + data.size() + chunk_end.size());
  out.append(head.view()).append(data).append(chunk_end);
}

void append_last_chunk(std::string& out, const HeaderLines& trailers) {
  out.append("0\r\n");
  append_lines(out, trailers);
}

}  // namespace einmal::http
