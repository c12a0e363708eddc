#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "einmal/base/random.hpp"
#include "einmal/store/store.hpp"

/// The first request of a workflow: commits the intent and gets the operation, whoever finishes it.
namespace einmal::workflow {

struct StartRequest {
  Scope scope;
  Fingerprint fingerprint;
  std::shared_ptr<const Profile> profile;
  Policies policies;       ///< Its lease is ignored: a workflow's record has none.
  std::string definition;  ///< Definition::id()
  Bytes input;
};

namespace started {
/// The intent is durable: the workflow will be finished. Also for a repetition while it runs.
struct Accepted {
  OperationId id;
  bool first = false;  ///< By this request.
};
/// completed or failed.
struct Replay {
  Record record;
};
struct Mismatch {};
struct OtherProfile {
  Digest profile{};
};
/// A person or a reconciler must settle it.
struct Uncertain {
  Record record;
};
struct Gone {};
}  // namespace started
using Started = std::variant<started::Accepted, started::Replay, started::Mismatch,
                             started::OtherProfile, started::Uncertain, started::Gone>;

/// Blocks for the store. Errors: unavailable (nothing was started), in_doubt (it may have been:
/// send the same key again), unsupported (the store keeps no workflows), invalid.
Result<Started> start(Store& store, Random& random, const StartRequest& request);

/// Waits at most `wait` for the end of what was accepted; nothing: it still runs (answer 202 with
/// the operation's resource). Polls, seldom when it takes long. Blocks.
Result<std::optional<Record>> wait_for_end(Store& store, const Clock& clock, const OperationId& id,
                                           Duration wait);

}  // namespace einmal::workflow
