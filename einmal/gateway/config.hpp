#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/core/record.hpp"
#include "einmal/engine/engine.hpp"
#include "einmal/http/problem.hpp"
#include "einmal/http/status_class.hpp"
#include "einmal/observe/log.hpp"

/// What a gateway is told, as plain values with the contract's defaults. Text formats (TOML file,
/// command line) are read into it elsewhere; a configuration that reached a Gateway was checked.

namespace einmal {

using std::chrono::seconds;

/// Where to listen or connect. Port 0 to listen: the system picks one.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

enum class TlsVersion : std::uint8_t { tls12, tls13 };

/// TLS towards clients. Files are read at start and at every reload.
struct ServerTls {
  std::string certificate;               ///< PEM file: chain, leaf first.
  std::string key;                       ///< PEM file.
  std::optional<std::string> client_ca;  ///< PEM file: ask for client certificates (mtls).
  TlsVersion minimum = TlsVersion::tls12;
  friend bool operator==(const ServerTls&, const ServerTls&) = default;
};

/// TLS towards the upstream.
struct ClientTls {
  std::optional<std::string> ca;                ///< PEM file; nothing: the system's certificates.
  std::optional<std::string> server_name;       ///< Verified and sent as SNI; nothing: the host.
  std::optional<std::string> certificate, key;  ///< PEM files: our own, if the upstream asks.
  bool verify = true;
  TlsVersion minimum = TlsVersion::tls12;
  friend bool operator==(const ClientTls&, const ClientTls&) = default;
};

/// One upstream origin. Requests that match nothing go to all of them in turn as well.
struct UpstreamAddress {
  bool tls = false;
  HostPort address;
  friend bool operator==(const UpstreamAddress&, const UpstreamAddress&) = default;
};

enum class UpstreamReuse : std::uint8_t { pooled, never };
enum class UpstreamKey : std::uint8_t { original, derived, none };
enum class ReplayMode : std::uint8_t { stored, resource };
enum class OnStoreFailure : std::uint8_t { closed, open };
enum class UnmatchedKey : std::uint8_t { pass, refuse };
enum class Discovery : std::uint8_t { callers, public_, off };
using Dialect = http::Dialect;
using DeclaredOutcome = http::Outcome;

struct UpstreamConfig {
  std::vector<UpstreamAddress> addresses;  ///< At least one.
  ClientTls tls;
  /// Keyed requests use a pooled connection only if it idled less than this; keep it below the
  /// upstream's own keep-alive time.
  Duration idle = seconds(1);
  UpstreamReuse reuse = UpstreamReuse::pooled;
  std::size_t connections = 256;  ///< To all addresses together; what is over it queues.
  friend bool operator==(const UpstreamConfig&, const UpstreamConfig&) = default;
};

/// Time limits towards the upstream; an operation may have its own.
struct UpstreamTimes {
  Duration connect = seconds(3);
  Duration answer = seconds(60);        ///< Until the whole answer is here; then 504, uncertain.
  Duration late_answer = seconds(300);  ///< How long the connection is read on after that.
  friend bool operator==(const UpstreamTimes&, const UpstreamTimes&) = default;
};

enum class CallerKind : std::uint8_t { header, fixed, jwt, mtls, auth_request };

/// Keys that verify tokens, and what a token must say (`jwt:`).
struct JwtConfig {
  std::string keys;                     ///< PEM or JWKS file, read again when it changes.
  std::vector<std::string> algorithms;  ///< Empty: what the keys allow, HS256 never by accident.
  std::optional<std::string> issuer;
  std::vector<std::string> audiences;
  Duration leeway = seconds(30);
  friend bool operator==(const JwtConfig&, const JwtConfig&) = default;
};

/// Who is asking. Configured, never guessed.
struct CallerConfig {
  CallerKind kind = CallerKind::header;
  /// Header name, fixed account, claim name, `subject` or a SAN kind, or the URL to ask.
  std::string argument = "X-Caller";
  /// Networks (CIDR) whose `header:` lines count; from anybody else they are stripped.
  std::vector<std::string> trusted_peers = {"127.0.0.0/8", "::1/128"};
  std::optional<std::string> map;  ///< File that translates credentials to account names.
  std::map<std::string, std::string> require;  ///< `jwt:` claims that must have these values.
  std::string answer_header = "X-Caller";      ///< `auth-request:`: names the caller in its answer.
  Duration positive_cache{};                   ///< `auth-request:`: zero: ask every time.
  JwtConfig jwt;
  friend bool operator==(const CallerConfig&, const CallerConfig&) = default;
};

struct GatewayLimits {
  std::size_t buffer_budget = std::size_t{256} << 20;  ///< Bytes, over all bodies held.
  std::size_t connections = 10'000;
  std::size_t waiters = 1024;
  std::size_t waiters_per_key = 16;
  std::size_t waiters_per_caller = 256;
  std::uint64_t live_per_caller = 1'000'000;
  std::uint64_t uncertain_per_caller = 1'000;
  std::size_t head = std::size_t{32} << 10;  ///< Bytes of a request's or an answer's head.
  Duration head_time = seconds(10);
  Duration body_time = seconds(30);        ///< Longest silence within a keyed request body, and
  std::size_t body_rate = 1024;            ///< fewest bytes a second over the whole of it.
  Duration keep_alive_time = seconds(75);  ///< How long an idle client connection is kept.
  friend bool operator==(const GatewayLimits&, const GatewayLimits&) = default;
};

/// Browsers: who may read answers cross-origin.
struct CorsConfig {
  std::vector<std::string> origins;  ///< Exact origins, or "*".
  std::vector<std::string> methods;  ///< Empty: those of the matched operations.
  std::vector<std::string> headers;  ///< Allowed beside the key header and Content-Type.
  std::vector<std::string> expose;   ///< Exposed beside einmal's own.
  bool credentials = false;
  Duration max_age = std::chrono::minutes(10);
  friend bool operator==(const CorsConfig&, const CorsConfig&) = default;
};

/// Which parts of a request enter its fingerprint, beside method, operation, target and body.
struct FingerprintConfig {
  std::vector<std::string> headers;             ///< Semantic headers.
  std::vector<std::string> ignore;              ///< JSON pointers left out.
  std::vector<std::string> only;                ///< JSON pointers; empty: the whole body.
  std::map<std::string, std::string> defaults;  ///< JSON pointer -> JSON text of the default.
  bool nfc = false;                             ///< Compare strings in Unicode form C.
  friend bool operator==(const FingerprintConfig&, const FingerprintConfig&) = default;
};

/// Where the key stands in a request.
struct KeyConfig {
  bool required = true;
  std::string header = "Idempotency-Key";
  std::vector<std::string> aliases;   ///< Other header names that carry the key.
  std::optional<std::string> member;  ///< JSON pointer of a body member that carries it.
  friend bool operator==(const KeyConfig&, const KeyConfig&) = default;
};

/// How to ask the upstream what became of an uncertain operation.
struct ReconcileConfig {
  /// `GET /orders?key={key}`; also `{caller}` and `{operation-id}`.
  std::string request;
  /// Answers (a status; a status and a pointer that must be there; a status and `pointer = value`)
  /// that mean: it happened, it was refused, there is no effect. Any other answer, and one that
  /// means two of these, settles nothing.
  std::vector<std::string> completed, failed, absent;
  int status = 200;         ///< Of the result that repeats get, where it happened.
  int failed_status = 0;    ///< The same, where it was refused; needed with `failed`.
  std::string result;       ///< JSON pointer to the result's body in the answer; empty: all of it.
  std::string location;     ///< Of the result, `/orders/{/id}`: pointers within the result's body.
  std::string credentials;  ///< File of header lines that the request carries.
  friend bool operator==(const ReconcileConfig&, const ReconcileConfig&) = default;
};

/// `POST /orders/{id}/refunds`: a method and a path template. A `{name}` stands for one segment.
struct MatchConfig {
  std::string method;
  std::string path;
  friend bool operator==(const MatchConfig&, const MatchConfig&) = default;
};

struct OperationConfig {
  std::string name;   ///< Identity, part of the scope; not a label.
  std::string title;  ///< The label.
  MatchConfig match;
  KeyConfig key;
  InFlight in_flight = InFlight::reject;
  Duration wait = seconds(5);
  Policies policies = default_policies();
  std::size_t max_request_body = std::size_t{1} << 20;
  std::size_t max_stored_body = std::size_t{1} << 20;
  FingerprintConfig fingerprint;
  UpstreamKey upstream_key = UpstreamKey::original;
  std::map<int, DeclaredOutcome> outcomes;  ///< Over the contract's status table.
  ReplayMode replay = ReplayMode::stored;
  std::vector<std::string> unstored_headers;  ///< Answer headers that are never replayed.
  int uncertain_status = 504;                 ///< or 409
  Duration store_grace = seconds(5);
  OnStoreFailure on_store_failure = OnStoreFailure::closed;
  std::optional<std::string> authorize;  ///< URL asked with the request's credentials.
  std::optional<ReconcileConfig> reconcile;
  std::optional<Duration> quiescence;
  UpstreamTimes times;
  friend bool operator==(const OperationConfig&, const OperationConfig&) = default;

  /// What covers every POST and PATCH where no operation is configured: it has no name and no
  /// match, and is named by method and canonical path.
  static OperationConfig built_in() {
    OperationConfig operation;
    operation.key.required = false;
    operation.in_flight = InFlight::wait;
    return operation;
  }

  static Policies default_policies() {
    Policies policies;
    policies.lease = seconds(30);
    return policies;
  }
};

/// What is written about requests and records, see observe/log.hpp.
struct LogConfig {
  LogOptions::Format format = LogOptions::Format::text;
  LogLevel level = LogLevel::info;
  std::optional<std::string> file;  ///< Nothing: standard error.
  bool requests = false;            ///< One line for each request, too.
  friend bool operator==(const LogConfig&, const LogConfig&) = default;
};

/// The whole of it.
struct GatewayConfig {
  HostPort listen{"127.0.0.1", 8080};
  std::optional<ServerTls> tls;
  std::optional<HostPort> metrics;  ///< GET /metrics, /healthz, /readyz
  LogConfig log;
  std::string name_space = "gateway";
  std::string store_url = "sqlite:einmal.db";
  Duration audit_retention = std::chrono::hours(24 * 400);
  /// When an operator accepted the wall clock after a jump. Whoever opens the store passes it on
  /// within an hour of that time; an old acceptance accepts no later jump.
  std::optional<WallTime> accept_time;
  UpstreamConfig upstream;
  UpstreamTimes times;  ///< For what matches no operation.
  CallerConfig caller;
  GatewayLimits limits;
  Duration drain = seconds(30);
  std::vector<std::string> retired;          ///< Operation names that may have records.
  std::map<std::string, std::string> hosts;  ///< Authority alias -> authority.
  Discovery discovery = Discovery::callers;
  UnmatchedKey unmatched_key = UnmatchedKey::pass;
  std::optional<std::string> documentation;  ///< Base URL of problem types.
  Dialect dialect = Dialect::ietf;
  /// File of bearer tokens whose holders may report outcomes; nothing: nobody may.
  std::optional<std::string> outcome_tokens;
  /// Whether keyed answers are compressed for clients that accept it, see representation.hpp.
  bool compress = true;
  std::optional<CorsConfig> cors;
  std::vector<OperationConfig> operations;
  /// Used while `operations` is empty: OperationConfig::built_in with what [defaults] says.
  OperationConfig built_in = OperationConfig::built_in();
  friend bool operator==(const GatewayConfig&, const GatewayConfig&) = default;
};

}  // namespace einmal
