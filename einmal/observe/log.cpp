#include "einmal/observe/log.hpp"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <optional>
#include <utility>

#include "einmal/observe/log_line.hpp"
#include "einmal/observe/names.hpp"
#include "einmal/store/log_digest.hpp"

namespace einmal {

namespace {

constexpr std::size_t queued_lines = 8192;
constexpr Duration quiet = std::chrono::seconds(1);

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Trace {
  std::string_view trace_id, span_id;
};

/// W3C Trace Context, section 3.2: version-traceid-parentid-flags, lower-case hexadecimal.
std::optional<Trace> parse_traceparent(std::string_view text) {
  if (text.size() < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  const Trace trace{text.substr(3, 32), text.substr(36, 16)};
  if (!is_hex(trace.trace_id) || !is_hex(trace.span_id)) return std::nullopt;
  return trace;
}

}  // namespace

struct Log::Parts {
  LogOptions options;
  const Clock& clock;
  LogDigest digest;
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::logger> logger;  ///< None with a sink of the user's.
  std::optional<BootTime> store_error_at;
  std::uint64_t store_errors_left_out = 0;

  bool wants(LogLevel level) const { return level >= options.level; }
  detail::LogLine line(LogLevel level, std::string_view event) const {
    return {options.format, clock.wall_now(), level, event};
  }
  detail::LogLine line(LogLevel level, std::string_view event, const Scope& scope,
                       Generation generation) const {
    auto line = this->line(level, event);
    line.add("operation", scope.operation())
        .add("key", digest.of(scope))
        .add("caller", digest.of_caller(scope.name_space(), scope.caller()))
        .add("generation", number(generation));
    return line;
  }
  void write(detail::LogLine& line) {
    const std::string text = line.finish();
    if (options.sink) {
      options.sink(text);
    } else {
      logger->log(spdlog::level::info, spdlog::string_view_t(text.data(), text.size()));
    }
  }
};

Log::Log(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Log::~Log() {
  if (parts_->logger) parts_->logger->flush();
}

Result<std::unique_ptr<Log>> Log::open(const Store& store, const Clock& clock, LogOptions options) {
  auto parts =
      std::unique_ptr<Parts>(new Parts{std::move(options), clock, LogDigest(store), {}, {}, {}});
  if (!parts->options.sink) {
    std::shared_ptr<spdlog::sinks::sink> sink;
    try {
      if (parts->options.file.empty()) {
        sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
      } else {
        sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(parts->options.file);
      }
    } catch (const spdlog::spdlog_ex&) {
      return failure(ErrorCode::invalid, "log: cannot open " + parts->options.file +
                                             "; name a file that this user may append to");
    }
    parts->pool = std::make_shared<spdlog::details::thread_pool>(queued_lines, 1);
    parts->logger = std::make_shared<spdlog::async_logger>(
        "einmal", std::move(sink), parts->pool, spdlog::async_overflow_policy::overrun_oldest);
    parts->logger->set_pattern("%v");
    parts->logger->flush_on(spdlog::level::info);
  }
  return std::unique_ptr<Log>(new Log(std::move(parts)));
}

void Log::begun(const BeginReport& report) {
  if (report.takeover && parts_->wants(LogLevel::warning)) {
    auto line =
        parts_->line(LogLevel::warning, "taken_over", report.scope, report.record->generation);
    line.add("operation_id", report.record->operation_id.text())
        .add("attempts", std::uint64_t{report.record->attempts});
    parts_->write(line);
  }
  if (report.entered && parts_->wants(LogLevel::warning)) {
    auto line =
        parts_->line(LogLevel::warning, "uncertain", report.scope, report.record->generation);
    line.add("operation_id", report.record->operation_id.text()).add("cause", "lease_end");
    parts_->write(line);
  }
}

void Log::finished(const FinishReport& report) {
  const bool unknown = report.asked == Finish::mark_uncertain || report.asked == Finish::abandon;
  LogLevel level = LogLevel::debug;
  std::string_view event = "finished";
  switch (report.outcome) {
    case FinishOutcome::recorded:
      if (unknown) {
        level = LogLevel::warning;
        event = report.asked == Finish::abandon ? "abandoned" : "uncertain";
      } else if (report.late) {
        level = LogLevel::info;
        event = "late_outcome";
      } else if (report.background) {
        level = LogLevel::info;
        event = "recorded_at_last";
      }
      break;
    case FinishOutcome::became_uncertain:
      level = LogLevel::warning;
      event = "uncertain";
      break;
    case FinishOutcome::lost:
      break;  // ownership_lost and late_result say it
    case FinishOutcome::unrecorded:
      level = LogLevel::warning;
      event = "unrecorded";
      break;
    case FinishOutcome::given_up:
      level = LogLevel::error;
      event = "outcome_given_up";
      break;
  }
  if (!parts_->wants(level)) return;
  auto line = parts_->line(level, event, report.scope, report.claimed.generation);
  line.add("operation_id", report.claimed.operation_id.text())
      .add("asked", einmal::name(report.asked))
      .add("took", report.took);
  if (report.outcome == FinishOutcome::became_uncertain) {
    line.add("cause", detail::name(UncertainCause::after_takeover));
  } else if (report.cause != UncertainCause::none) {
    line.add("cause", detail::name(report.cause));
  }
  parts_->write(line);
}

void Log::ownership_lost(const Scope& scope, Generation generation) {
  if (!parts_->wants(LogLevel::warning)) return;
  auto line = parts_->line(LogLevel::warning, "ownership_lost", scope, generation);
  parts_->write(line);
}

void Log::late_result(const Scope& scope, Generation generation, bool contradicts) {
  const LogLevel level = contradicts ? LogLevel::error : LogLevel::warning;
  if (!parts_->wants(level)) return;
  auto line = parts_->line(level, "late_result", scope, generation);
  line.add("contradicts", contradicts);
  parts_->write(line);
}

void Log::reconciled(const Scope& scope, Generation generation, Reconciled what) {
  const LogLevel level = what == Reconciled::unknown ? LogLevel::debug : LogLevel::info;
  if (!parts_->wants(level)) return;
  auto line = parts_->line(level, "reconciled", scope, generation);
  line.add("outcome", einmal::name(what));
  parts_->write(line);
}

void Log::store_answered(StoreCall call, Duration took, std::optional<ErrorCode> error) {
  if (!error || !parts_->wants(LogLevel::error)) return;
  const BootTime now = parts_->clock.boot_now();
  if (parts_->store_error_at && now - *parts_->store_error_at < quiet) {
    ++parts_->store_errors_left_out;
    return;
  }
  parts_->store_error_at = now;
  auto line = parts_->line(LogLevel::error, "store_failed");
  line.add("call", einmal::name(call)).add("code", detail::name(*error)).add("took", took);
  const std::uint64_t left_out = std::exchange(parts_->store_errors_left_out, 0);
  if (left_out > 0) line.add("left_out", left_out);
  parts_->write(line);
}

void Log::overdue(std::size_t became_uncertain) {
  if (!parts_->wants(LogLevel::warning)) return;
  auto line = parts_->line(LogLevel::warning, "overdue");
  line.add("became_uncertain", std::uint64_t{became_uncertain});
  parts_->write(line);
}

void Log::swept(std::size_t removed, std::size_t stripped) {
  if (!parts_->wants(LogLevel::debug)) return;
  auto line = parts_->line(LogLevel::debug, "swept");
  line.add("removed", std::uint64_t{removed}).add("stripped", std::uint64_t{stripped});
  parts_->write(line);
}

void Log::alarm(Alarm alarm, std::string_view detail) {
  if (!parts_->wants(LogLevel::error)) return;
  auto line = parts_->line(LogLevel::error, "alarm");
  line.add("alarm", einmal::name(alarm)).add_if("detail", detail);
  parts_->write(line);
}

void Log::request_ended(const Request& request) {
  if (!parts_->options.requests || !parts_->wants(LogLevel::info)) return;
  auto line = parts_->line(LogLevel::info, "request");
  line.add("method", request.method)
      .add_if("operation", request.operation)
      .add("status", static_cast<std::uint64_t>(request.status))
      .add_if("outcome", request.outcome)
      .add_if("reason", request.reason)
      .add("request_bytes", request.request_bytes)
      .add("answer_bytes", request.answer_bytes)
      .add("took", request.took);
  if (const auto trace = parse_traceparent(request.traceparent)) {
    line.add("trace_id", trace->trace_id).add("span_id", trace->span_id);
  }
  parts_->write(line);
}

void Log::note(LogLevel level, std::string_view event, std::string_view detail) {
  if (!parts_->wants(level)) return;
  auto line = parts_->line(level, event);
  line.add_if("detail", detail);
  parts_->write(line);
}

}  // namespace einmal
