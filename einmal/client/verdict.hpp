#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "einmal/client/request.hpp"

namespace einmal::client {

/// Why. Each kind of verdict has its own few; the names are those of clients/behaviour.json.
enum class Why : std::uint8_t {
  none,
  // refused
  failed,    ///< The operation was refused, and the server keeps that result.
  mismatch,  ///< The key belongs to another request.
  rejected,  ///< Refused before execution; a corrected request may come under the same intent.
  // not attempted
  unreachable,   ///< No connection was made.
  unavailable,   ///< The server said each time that nothing was done.
  unauthorised,  ///< 401, 403, 407: the intent stays open for other credentials.
  journal,       ///< The intent could not be made durable. (Also of unknown.)
  // unknown
  no_answer,     ///< Sent, and no whole answer came.
  in_progress,   ///< Another request with this key was still at work.
  uncertain,     ///< The server itself does not know.
  server_error,  ///< An answer that says nothing about the effect.
  expired,       ///< It was settled once; nobody remembers how.
  too_old,       ///< Not sent: the server may have forgotten the key.
};

/// What became of an intent: a closed set, each with its own consequence for the user interface.
namespace verdict {
/// It was done, by this request. Show the result.
struct Succeeded {
  Answer answer;
};
/// It had been done before; this is the stored result. Show it like Succeeded.
struct Replayed {
  Answer answer;
};
/// It will not be done. Show why; another try is another intent (or, when `rejected`, a corrected
/// request).
struct Refused {
  Why why = Why::failed;
  Answer answer;
};
/// Certainly nothing was done so far. The intent stays open: it may be sent again or given up.
struct NotAttempted {
  Why why = Why::unreachable;
  std::optional<Answer> last;
};
/// It may have been done or not. The key is kept: the same intent again finds it out. Never offer a
/// new one.
struct Unknown {
  Why why = Why::no_answer;
  std::optional<Answer> last;
};
}  // namespace verdict
using Verdict = std::variant<verdict::Succeeded, verdict::Replayed, verdict::Refused,
                             verdict::NotAttempted, verdict::Unknown>;

/// "succeeded", "replayed", "refused", "not_attempted", "unknown".
std::string_view name(const Verdict& verdict);
/// "" for none.
std::string_view name(Why why);
/// The inverse; nothing for an unknown name.
std::optional<Why> parse_why(std::string_view text);
Why why(const Verdict& verdict);
/// The answer that belongs to it, or null.
const Answer* answer_of(const Verdict& verdict);
/// Whether the intent is closed by it: succeeded, replayed, refused.
bool is_settled(const Verdict& verdict);
/// The verdict of that name; nothing for an unknown one, or one that needs an answer without it.
std::optional<Verdict> make_verdict(std::string_view name, Why why, std::optional<Answer> answer);

}  // namespace einmal::client
