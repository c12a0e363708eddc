#pragma once

#include <span>
#include <string_view>

#include "einmal/probe/bench.hpp"

namespace einmal::probe {

/// One question to the target.
struct Scenario {
  std::string_view name;  ///< For --only and --skip.
  std::string_view what;  ///< What is done and what must hold.
  std::string_view demanded_by;
  Judgement (*judge)(Bench& bench);
};

/// Every scenario, in the order in which they run; those that bring the target down are last.
std::span<const Scenario> all_scenarios();

Judgement repeated(Bench& bench);
Judgement same_bytes(Bench& bench);
Judgement same_headers(Bench& bench);
Judgement replay_marked(Bench& bench);
Judgement failure_replayed(Bench& bench);
Judgement resource_changed(Bench& bench);

Judgement key_missing(Bench& bench);
Judgement key_empty(Bench& bench);
Judgement key_long(Bench& bench);
Judgement key_odd(Bench& bench);
Judgement key_repeated(Bench& bench);
Judgement key_quoted(Bench& bench);
Judgement other_caller(Bench& bench);
Judgement other_operation(Bench& bench);

Judgement body_changed(Bench& bench);
Judgement body_changed_in_flight(Bench& bench);
Judgement body_chunked(Bench& bench);
Judgement json_reordered(Bench& bench);
Judgement json_respaced(Bench& bench);
Judgement json_numbers(Bench& bench);
Judgement json_big_integers(Bench& bench);

Judgement two_at_once(Bench& bench);
Judgement many_at_once(Bench& bench);
Judgement in_flight(Bench& bench);
Judgement pipelined(Bench& bench);

Judgement answer_lost(Bench& bench);
Judgement answer_cut(Bench& bench);
Judgement client_hangs_up(Bench& bench);
Judgement client_half_closes(Bench& bench);
Judgement half_sent(Bench& bench);
Judgement slow_sender(Bench& bench);
Judgement slow_reader(Bench& bench);
Judgement hidden_resends(Bench& bench);

Judgement outcome_unknown(Bench& bench);
Judgement retention_over(Bench& bench);
Judgement crash(Bench& bench);
Judgement crash_decided(Bench& bench);
Judgement stale_owner(Bench& bench);
Judgement dependency_outage(Bench& bench);

}  // namespace einmal::probe
