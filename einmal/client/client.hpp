#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"
#include "einmal/base/random.hpp"
#include "einmal/client/journal.hpp"
#include "einmal/client/patience.hpp"
#include "einmal/client/transport.hpp"
#include "einmal/client/verdict.hpp"

namespace einmal::client {

struct ClientOptions {
  Patience patience;
  double retry_budget = 10;
  std::string key_header = "Idempotency-Key";
  KeyStyle key_style = KeyStyle::bare;
  /// How long a server that publishes nothing is assumed to keep results.
  Duration assumed_window = std::chrono::hours(24);
  /// Send keys that are older than the server's window all the same: it may be done twice.
  bool send_too_old = false;
  std::size_t largest_kept_answer = 1024 * 1024;  ///< Longer bodies are not kept in the journal.
};

/// What became of one call.
struct Outcome {
  Verdict verdict;
  std::string intent, key;
  int attempts = 0;                    ///< Made by this call.
  bool from_journal = false;           ///< Settled by an earlier call; nothing was sent.
  std::string detail;                  ///< For a person: what went wrong last. Empty on success.
  std::optional<Error> journal_error;  ///< The verdict holds, but could not be made durable.
};

/// Sends requests under intents that survive it. Blocks; starts no thread; belongs to one thread at
/// a time, as its journal does. Everything given must outlive it.
class Client {
 public:
  struct World {
    Journal& journal;
    Transport& transport;
    Clock& clock;
    Random& random;  ///< Of keys: SystemRandom.
    Pause& pause;
    Watcher* watcher = nullptr;
  };
  Client(World world, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Sends `request` under the intent of that name until its outcome is known or patience ends. The
  /// same name is the same key, in this and every later process: of a settled intent (but a
  /// `rejected` one) the kept verdict is returned and nothing is sent.
  ///
  /// Errors: invalid - the request cannot be sent, or the name stands for another request that was
  /// or may have been executed; corrupt - the record of this intent cannot be trusted. Nothing was
  /// sent by this call then. That the journal cannot be written is a verdict (Why::journal).
  Result<Outcome> send(const std::string& intent, const Request& request);

  /// Finishes an open intent from what the journal holds. Of a settled one (also a `rejected` one:
  /// nobody asked for it again) the kept verdict is returned and nothing is sent. Errors: invalid
  /// (no such intent).
  Result<Outcome> resume(const std::string& intent, const http::HeaderLines& credentials = {});

 private:
  class Run;
  struct Call {
    const Intent& intent;
    bool own_key;     ///< The key is the application's: an entry with another one is not touched.
    bool asked_anew;  ///< By `send`: a rejected request is sent again.
    const http::HeaderLines& credentials;
  };
  Result<Outcome> run(const Call& call);
  Result<std::optional<IntentLock>> lock(const std::string& intent, BootTime deadline);
  Outcome without_journal(const Intent& intent, std::string detail);

  World world_;
  ClientOptions options_;
  RetryBudget budget_;
};

/// What a request must be to be sent at all. Errors: invalid.
Result<void> check_request(const std::string& intent, const Request& request);

}  // namespace einmal::client
