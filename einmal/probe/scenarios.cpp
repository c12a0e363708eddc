#include <array>

#include "einmal/probe/scenario.hpp"

namespace einmal::probe {

namespace {

constexpr std::string_view field = "draft-ietf-httpapi-idempotency-key-header";
constexpr std::string_view field_2_1 = "draft-ietf-httpapi-idempotency-key-header, 2.1 and 2.2";
constexpr std::string_view field_2_6 = "draft-ietf-httpapi-idempotency-key-header, 2.6";
constexpr std::string_view field_2_7 = "draft-ietf-httpapi-idempotency-key-header, 2.7";
constexpr std::string_view retries = "RFC 9110, 9.2.2: a client may repeat what is idempotent";

constexpr std::array scenarios{
    // Repeats
    Scenario{"repeated", "The same request three times under one key: one effect, one result.",
             field_2_6, repeated},
    Scenario{"same-bytes", "The repeat's status and body are those of the first answer.", field_2_6,
             same_bytes},
    Scenario{"same-headers",
             "The header lines that belong to the result (not Date, cookies, caching ...) are "
             "those of the first answer.",
             field_2_6, same_headers},
    Scenario{"replay-marked", "A header tells the repeat's answer from a first one.",
             "practice since Stripe's Idempotent-Replayed; einmal's contract", replay_marked},
    Scenario{"failure-replayed",
             "A request refused by a business rule (--failing-body) is refused the same way again.",
             field_2_6, failure_replayed},
    Scenario{"resource-changed",
             "Window 9: the resource is changed or deleted (--mutate), then the old key comes "
             "again: the stored representation, unchanged.",
             field_2_6, resource_changed},
    // Keys
    Scenario{"key-missing", "Two requests without a key are refused, or are two requests.",
             field_2_7, key_missing},
    Scenario{"key-empty", "An empty key is refused or no key; it is never everybody's key.",
             field_2_1, key_empty},
    Scenario{"key-long",
             "Two keys of over 400 bytes that differ at their end stay two keys, or "
             "are refused; nothing is cut off.",
             field_2_1, key_long},
    Scenario{"key-odd", "Keys that differ in case, zeros, wildcards, escapes or quotes stay two.",
             "draft-ietf-httpapi-idempotency-key-header, 2.2 and 5 (injection)", key_odd},
    Scenario{"key-repeated", "A request with two key lines, equal or not, is refused.",
             "draft-ietf-httpapi-idempotency-key-header, 2.1; RFC 8941, 4.2: not an Item",
             key_repeated},
    Scenario{"key-quoted", "A key in quotes is taken, and works as a key.", field_2_1, key_quoted},
    Scenario{"other-caller",
             "The same key from --other-caller: a request of its own, no foreign result, no hint.",
             "draft-ietf-httpapi-idempotency-key-header, 5: a key composed with the client",
             other_caller},
    Scenario{"other-operation",
             "The same key on --other-request: a result of its own or a refusal.", field,
             other_operation},
    // Bodies
    Scenario{"body-changed", "Another body under a used key is refused; the first result stays.",
             field_2_7, body_changed},
    Scenario{"body-changed-in-flight",
             "Window 2: the same while the first still runs (best with --slow-header).", field_2_7,
             body_changed_in_flight},
    Scenario{"body-chunked", "The repeat is sent in chunks: framing is not content.",
             "RFC 9112, 7.1", body_chunked},
    Scenario{"json-reordered", "Members in another order: replayed or refused, never run again.",
             "RFC 8259, 4: objects are unordered", json_reordered},
    Scenario{"json-respaced", "Other white space: replayed or refused, never run again.",
             "RFC 8259, 2", json_respaced},
    Scenario{"json-numbers",
             "10 written as 10.0, 1e1, 100E-1: replayed or refused, never run "
             "again.",
             "RFC 8259, 6", json_numbers},
    Scenario{"json-big-integers",
             "9007199254740993 changed to ...992 is another request: refused, not replayed.",
             "RFC 8259, 6: numbers beyond double precision", json_big_integers},
    // At once
    Scenario{"two-at-once",
             "Window 1: two copies released together, four rounds: one effect, one result.",
             field_2_6, two_at_once},
    Scenario{"many-at-once", "Window 1: the same with --concurrency copies.", field_2_6,
             many_at_once},
    Scenario{"in-flight",
             "Window 1: a duplicate while the first runs is told to wait or gets its "
             "result, never success before it is there (best with --slow-header).",
             field_2_6, in_flight},
    Scenario{"pipelined", "Two copies in one write on one connection.", "RFC 9112, 9.3.2",
             pipelined},
    // Connections
    Scenario{"answer-lost", "Window 3: the connection is reset when the answer is there, unread.",
             retries, answer_lost},
    Scenario{"answer-cut", "Window 3: reset in the middle of the answer.", retries, answer_cut},
    Scenario{"client-hangs-up",
             "Window 5: closed and reset at once, half way and later; every key comes to one "
             "effect.",
             retries, client_hangs_up},
    Scenario{"client-half-closes", "Window 5: the client sends FIN and waits.", "RFC 9112, 9.6",
             client_half_closes},
    Scenario{"half-sent", "Half of the body, then a reset: no effect, and the key is not lost.",
             "RFC 9112, 8: an incomplete request", half_sent},
    Scenario{"slow-sender", "A request sent slowly is overtaken by its own repeat.", field_2_6,
             slow_sender},
    Scenario{"slow-reader", "The answer is read 16 bytes at a time.", retries, slow_reader},
    Scenario{"hidden-resends", "What is sent once happens once: nobody on the way sends again.",
             "RFC 9110, 9.2.2: a proxy must not repeat what is not idempotent", hidden_resends},
    // Outcomes and time
    Scenario{"outcome-unknown",
             "Window 7: what the target depends on vanishes after the effect (--fault-header): a "
             "repeat is never run again.",
             field_2_6, outcome_unknown},
    Scenario{"retention-over",
             "Window 8: within --retention a replay; after it the key comes eight times at once: "
             "one new effect at most.",
             "draft-ietf-httpapi-idempotency-key-header, 2.3", retention_over},
    Scenario{"crash",
             "Window 4: the target is killed (--crash-command) at four moments and started again "
             "(--start-command): one effect at most, no invented success.",
             field_2_6, crash},
    Scenario{"crash-decided",
             "Window 4: killed while the request runs: within --patience (longer than the "
             "target's lease) a repeat gets a result, a refusal or an openly unknown outcome, not "
             "\"in progress\" for ever.",
             field_2_6, crash_decided},
    Scenario{"stale-owner", "Window 6: an owner that was stopped past its lease goes on.",
             "fencing", stale_owner},
    Scenario{"dependency-outage", "Window 10: a dependency is down under load.", "bounded retries",
             dependency_outage},
};

}  // namespace

std::span<const Scenario> all_scenarios() { return scenarios; }

}  // namespace einmal::probe
