#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/http/message_parser.hpp"
#include "einmal/http/write.hpp"

/// For the tests of this room: what a parser said about some bytes, as text that can be compared.
namespace einmal::http::transcript {

inline std::string text(const HeaderLines& lines) { return serialize(lines); }

inline std::string text(const RequestHead& head) {
  return head.method + " " + head.target + " " + std::to_string(head.version) + "\n" +
         text(head.headers);
}
inline std::string text(const ResponseHead& head) {
  return std::to_string(head.status) + " " + head.reason + " " + std::to_string(head.version) +
         "\n" + text(head.headers);
}

/// Feeds `pieces` one after the other until the first message is complete or refused.
/// "head ...", "interim ...", "body ..." (pieces joined), "complete", "error ...", and how much was
/// left over. Throws std::logic_error if the parser breaks its own contract.
template <class Parser>
std::string of(Parser& parser, const std::vector<std::string_view>& pieces) {
  std::string out, body;
  std::size_t taken = 0, total = 0;
  for (const auto piece : pieces) total += piece.size();
  for (auto piece : pieces) {
    for (;;) {
      const auto fed = parser.feed(piece);
      piece.remove_prefix(fed.consumed);
      taken += fed.consumed;
      if (fed.step == Step::need_more) {
        if (!piece.empty()) throw std::logic_error("need_more left input over");
        break;
      }
      if (fed.step == Step::body) {
        if (fed.body.empty()) throw std::logic_error("an empty body piece");
        body.append(fed.body);
        continue;
      }
      if (fed.step == Step::head) out += "head " + text(parser.head());
      if (fed.step == Step::interim) out += "interim " + text(parser.head());
      if (fed.step == Step::error) {
        return out + "body " + body + "\nerror " + std::string(parser.error().what);
      }
      if (fed.step == Step::complete) {
        return out + "body " + body + "\ntrailers " + text(parser.trailers()) + "complete, " +
               std::to_string(total - taken) + " left";
      }
    }
  }
  return out + "body " + body + "\nneed_more";
}

inline std::vector<std::string_view> bytewise(std::string_view bytes) {
  std::vector<std::string_view> pieces;
  for (std::size_t i = 0; i < bytes.size(); ++i) pieces.push_back(bytes.substr(i, 1));
  return pieces;
}

inline std::vector<std::string_view> cut_at(std::string_view bytes, std::size_t at) {
  return {bytes.substr(0, at), bytes.substr(at)};
}

}  // namespace einmal::http::transcript
