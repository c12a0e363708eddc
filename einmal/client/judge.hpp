#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "einmal/base/clock.hpp"
#include "einmal/client/verdict.hpp"

namespace einmal::client {

/// What the answer to one attempt leads to. Pure; the table is in clients/README.md, and the first
/// line that fits decides.
namespace judged {
/// Nothing more is sent.
struct Final {
  Verdict verdict;
};
/// Send the same request again. `why` would be the verdict's if patience ended here; with
/// `in_doubt` the attempt may have been executed.
struct Again {
  bool in_doubt = true;
  Why why = Why::server_error;
};
/// The same, but another request is at work: no failure of this attempt.
struct Wait {};
/// 202: ask this operation (an absolute URL of the request's own origin) for the result.
struct Poll {
  std::string url;
};
}  // namespace judged
using Judged = std::variant<judged::Final, judged::Again, judged::Wait, judged::Poll>;

/// Whether earlier attempts of the intent may have been executed, and since what.
struct Doubt {
  bool in_doubt = false;
  Why why = Why::no_answer;
};

/// The answer's Retry-After at `now`; nothing for none and for nonsense.
std::optional<Duration> retry_after(const Answer& answer, WallTime now);

Judged judge(const Answer& answer, const Doubt& doubt, std::string_view request_url);

}  // namespace einmal::client
