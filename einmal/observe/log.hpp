#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"
#include "einmal/engine/observer.hpp"
#include "einmal/store/store.hpp"

namespace einmal {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

struct LogOptions {
  enum class Format : std::uint8_t { text, json };
  Format format = Format::text;
  LogLevel level = LogLevel::info;  ///< Below it nothing is written.
  /// Where lines go: a file that is appended to; empty: standard error.
  std::string file;
  /// Instead of both: called with each line (without its line break), on the caller's thread.
  std::function<void(std::string_view)> sink;
  /// Also one line (info) for each request that `request_ended` is told of.
  bool requests = false;
};

/// Structured log of what a person may want to know afterwards: takeovers, lost owners, uncertain
/// outcomes, late and unrecorded results, failures of the store, alarms. One line for each event,
/// as `name=value` pairs or as JSON objects; docs/metrics.md lists them.
///
/// Keys and callers appear as digests only (LogDigest); no body, credential or fingerprint ever
/// does. Failures of the store are written at most once a second, with the number left out.
///
/// Lines go through a bounded queue to a thread of their own, so that a slow disk or terminal does
/// not stop the engine; when the queue is full the oldest are dropped. With `sink` there is neither
/// queue nor thread. Engine's thread only.
class Log final : public Observer {
 public:
  /// `store` names the secret of the digests; `clock` the times. Both must outlive this. Starts the
  /// thread, see above. Errors: invalid, the file cannot be opened.
  static Result<std::unique_ptr<Log>> open(const Store& store, const Clock& clock,
                                           LogOptions options);
  /// Writes what is queued.
  ~Log() override;

  void begun(const BeginReport& report) override;
  void finished(const FinishReport& report) override;
  void ownership_lost(const Scope& scope, Generation generation) override;
  void late_result(const Scope& scope, Generation generation, bool contradicts) override;
  void reconciled(const Scope& scope, Generation generation, Reconciled what) override;
  void store_answered(StoreCall call, Duration took, std::optional<ErrorCode> error) override;
  void overdue(std::size_t became_uncertain) override;
  void swept(std::size_t removed, std::size_t stripped) override;
  void alarm(Alarm alarm, std::string_view detail) override;

  /// A request through a gateway, for LogOptions::requests.
  struct Request {
    std::string_view operation, method;
    int status = 0;
    std::string_view outcome, reason;
    std::uint64_t request_bytes = 0, answer_bytes = 0;
    Duration took{};
    /// W3C traceparent as it came; written as trace_id and span_id when it is one.
    std::string_view traceparent;
  };
  void request_ended(const Request& request);
  /// Something the program itself has to say; no key, caller, body or credential.
  void note(LogLevel level, std::string_view event, std::string_view detail);

 private:
  struct Parts;
  explicit Log(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace einmal
