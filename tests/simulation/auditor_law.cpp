#include "auditor.hpp"

/// The events table of the semantics page, read as what must hold of a step that was taken.
namespace einmal::simulation {

namespace {

bool is_final(const Picture& p) {
  return p.state == RecordState::completed || p.state == RecordState::failed;
}

}  // namespace

const std::vector<std::string_view>& Auditor::all_rows() {
  static const std::vector<std::string_view> rows{
      "claim: absent",
      "claim: freed",
      "claim: expired with new",
      "claim: tombstone over",
      "claim: other profile",
      "claim: other fingerprint, processing",
      "claim: other fingerprint, uncertain",
      "claim: other fingerprint, settled",
      "claim: other fingerprint, tombstone",
      "claim: completed",
      "claim: failed",
      "claim: tombstone",
      "claim: same owner, processing",
      "claim: same owner, uncertain by lease end",
      "claim: lease running",
      "claim: no lease",
      "claim: lease over, takeover on both sides",
      "claim: lease over, otherwise",
      "claim: uncertain",
      "renew: processing",
      "renew: uncertain by lease end",
      "renew: lost",
      "settle: processing",
      "settle: uncertain",
      "settle: freed",
      "settle: after a takeover, proves nothing",
      "settle: again",
      "settle: lost",
      "release: processing",
      "release: uncertain",
      "release: after a takeover",
      "release: lost",
      "mark uncertain: processing",
      "mark uncertain: uncertain",
      "mark uncertain: lost",
      "abandon: takeover",
      "abandon: otherwise",
      "abandon: lost",
      "overdue: uncertain",
      "overdue: nothing to do",
      "doubt: no lease",
      "doubt: changed",
      "resolve: completed",
      "resolve: failed",
      "resolve: freed",
      "resolve: by force",
      "resolve: changed",
      "forget: settled",
      "forget: changed",
      "sweep: removed",
      "sweep: tombstone",
  };
  return rows;
}

// --- how a claim sees a record

bool Auditor::over(const Picture& p, const Clocks& c) const {
  if (paused_ || !p.expires) return false;
  if (p.state == RecordState::freed) return c.wall >= *p.expires;
  if (!is_final(p)) return false;
  return c.wall >= *p.expires + (p.promises.refuse ? p.promises.tombstone : Duration::zero());
}

Auditor::Seen Auditor::seen(const Picture& p, const Clocks& c) const {
  switch (p.state) {
    case RecordState::absent:
    case RecordState::freed:
      return Seen::absent;
    case RecordState::processing:
      return Seen::processing;
    case RecordState::uncertain:
      return Seen::uncertain;
    case RecordState::completed:
    case RecordState::failed:
      break;
  }
  if (over(p, c)) return Seen::absent;
  const bool expired = !paused_ && c.wall >= *p.expires;
  // Once swept, a tombstone has nothing left to replay, whatever the clock says then.
  return expired || !p.content ? Seen::tombstone : Seen::settled;
}

bool Auditor::lease_over(const Picture& p, const Clocks& c) {
  if (!p.lease_end) return false;
  return p.lease_boot != c.boot_number || c.boot >= *p.lease_end;
}

bool Auditor::mine(const StoreStep& s) const {
  return s.before.state != RecordState::absent && !over(s.before, s.clocks) &&
         s.before.generation == s.generation && s.before.owner == s.owner;
}

// --- what a step must leave alone

void Auditor::unchanged(const StoreStep& s, std::string_view rule) {
  law(s.before == s.after, rule, "this answer changes nothing, and the record was changed",
      s.scope);
}

void Auditor::same_operation(const StoreStep& s) {
  const Picture &was = s.before, &is = s.after;
  law(is.operation == was.operation && is.profile == was.profile && is.body == was.body, "identity",
      "operation id and fingerprint stay for the life of a record", s.scope);
  law(is.promises == was.promises, "promises", "a record keeps the policies it was claimed under",
      s.scope);
}

void Auditor::restarted(const StoreStep& s, std::string_view rule) {
  same_operation(s);
  const Picture& is = s.after;
  law(is.state == RecordState::processing, rule, "it is processing again", s.scope);
  const std::optional<Duration> end =
      is.promises.lease ? std::optional(s.clocks.boot + *is.promises.lease) : std::nullopt;
  law(is.lease_end == end && (!end || is.lease_boot == s.clocks.boot_number), "lease",
      "a lease lasts its own length from when it was granted", s.scope);
}

void Auditor::finally(const StoreStep& s, RecordState state, const std::string& content) {
  same_operation(s);
  const Picture &was = s.before, &is = s.after;
  law(is.state == state, "settlement", "the outcome is the one that was given", s.scope);
  law(is.generation == was.generation && is.attempts == was.attempts && is.owner == was.owner,
      "settlement", "owner and generation stay in the settled record", s.scope);
  law(is.expires == s.clocks.wall + was.promises.retention, "expiry",
      "retention runs from settlement and is the record's own", s.scope);
  const bool has_content = state != RecordState::freed;
  law(has_content ? is.content == content : !is.content, "settlement",
      "the stored result is the one that was given", s.scope);
}

void Auditor::lost(const StoreStep& s, std::string_view name) {
  row(name);
  law(s.said == Said::lost, "fence", "who does not own the key is told lost", s.scope);
  unchanged(s, "fence");
}

void Auditor::changed(const StoreStep& s, std::string_view name) {
  row(name);
  law(s.said == Said::changed, "compare and set", "an operator must look again", s.scope);
  unchanged(s, "compare and set");
}

// --- claim

void Auditor::claim(const StoreStep& s) {
  const Picture& was = s.before;
  const Seen how = seen(was, s.clocks);
  if (how == Seen::absent) return claim_of_a_free_key(s);
  if (was.profile != s.profile) {
    row("claim: other profile");
    law(s.said == Said::other_profile, "other profile", "digests of two profiles do not compare",
        s.scope);
    return unchanged(s, "other profile");
  }
  if (was.body != s.body) {
    if (how == Seen::processing) row("claim: other fingerprint, processing");
    if (how == Seen::uncertain) row("claim: other fingerprint, uncertain");
    if (how == Seen::settled) row("claim: other fingerprint, settled");
    if (how == Seen::tombstone) row("claim: other fingerprint, tombstone");
    law(s.said == Said::mismatch, "mismatch", "another fingerprint wins over every answer below",
        s.scope);
    return unchanged(s, "mismatch");
  }
  if (how == Seen::settled) {
    row(was.state == RecordState::completed ? "claim: completed" : "claim: failed");
    law(s.said == Said::replay && s.carried.content == was.content, "replay",
        "a settled key replays its result", s.scope);
    return unchanged(s, "replay");
  }
  if (how == Seen::tombstone) {
    row("claim: tombstone");
    law(s.said == Said::gone, "tombstone", "a tombstone answers gone until its end", s.scope);
    return unchanged(s, "tombstone");
  }
  const bool own = was.owner == s.owner;
  if (own && (how == Seen::processing || was.by_silence)) {
    row(how == Seen::processing ? "claim: same owner, processing"
                                : "claim: same owner, uncertain by lease end");
    law(s.said == Said::execute && s.repeated, "own claim again",
        "a claim whose answer was lost is its owner's", s.scope);
    law(s.after.generation == was.generation && s.after.attempts == was.attempts, "own claim again",
        "it is the same attempt", s.scope);
    return restarted(s, "own claim again");
  }
  if (how == Seen::uncertain) {
    row("claim: uncertain");
    law(s.said == Said::uncertain, "uncertain", "uncertain is never left by claiming", s.scope);
    return unchanged(s, "uncertain");
  }
  claim_of_a_processing_key(s);
}

void Auditor::claim_of_a_free_key(const StoreStep& s) {
  const Picture &was = s.before, &is = s.after;
  if (was.state == RecordState::absent) row("claim: absent");
  if (was.state == RecordState::freed) row("claim: freed");
  if (is_final(was)) row(was.promises.refuse ? "claim: tombstone over" : "claim: expired with new");
  law(s.said == Said::execute && !s.repeated && !s.takeover, "claim",
      "a free key is given to who claims it", s.scope);
  law(is.state == RecordState::processing && is.owner == s.owner && is.attempts == 1, "claim",
      "the claimant owns the first attempt", s.scope);
  law(is.profile == s.profile && is.body == s.body && is.promises == s.promises, "claim",
      "the record keeps fingerprint and policies of its claim", s.scope);
  law(is.operation == s.operation && !operations_.count(is.operation), "claim",
      "a key claimed anew has an operation id of its own", s.scope);
  law(is.generation > scopes_[s.scope].highest_generation, "generation",
      "generations of a key strictly increase", s.scope);
  law(!is.content && !is.expires && !is.by_silence, "claim", "nothing is settled yet", s.scope);
  const std::optional<Duration> end =
      s.promises.lease ? std::optional(s.clocks.boot + *s.promises.lease) : std::nullopt;
  law(is.lease_end == end, "lease", "a lease lasts its own length from when it was granted",
      s.scope);
}

void Auditor::claim_of_a_processing_key(const StoreStep& s) {
  const Picture &was = s.before, &is = s.after;
  if (!lease_over(was, s.clocks)) {
    row(was.lease_end ? "claim: lease running" : "claim: no lease");
    law(s.said == Said::in_progress, "lease",
        "while a lease runs, or where there is none, the key is in progress", s.scope);
    return unchanged(s, "lease");
  }
  if (was.promises.takeover && s.promises.takeover) {
    row("claim: lease over, takeover on both sides");
    law(s.said == Said::execute && s.takeover && !s.repeated, "takeover",
        "both sides chose takeover", s.scope);
    law(is.generation > scopes_[s.scope].highest_generation, "generation",
        "generations of a key strictly increase", s.scope);
    law(is.owner == s.owner && is.attempts == was.attempts + 1, "takeover",
        "a takeover is one attempt more, of a new owner", s.scope);
    return restarted(s, "takeover");
  }
  row("claim: lease over, otherwise");
  law(s.said == Said::uncertain, "takeover",
      "without takeover on both sides a silent owner leaves an uncertain key", s.scope);
  law(is.state == RecordState::uncertain && is.by_silence && is.generation == was.generation &&
          is.owner == was.owner,
      "takeover", "the key is uncertain and still its owner's to settle", s.scope);
  same_operation(s);
}

// --- the owner

void Auditor::renew(const StoreStep& s) {
  const Picture& was = s.before;
  const bool silent = was.state == RecordState::uncertain && was.by_silence;
  if (!mine(s) || !(was.state == RecordState::processing || silent)) return lost(s, "renew: lost");
  row(silent ? "renew: uncertain by lease end" : "renew: processing");
  law(s.said == Said::ok, "renew", "an owner renews its lease", s.scope);
  law(s.after.generation == was.generation && s.after.owner == was.owner, "renew",
      "the owner stays", s.scope);
  restarted(s, "renew");
}

void Auditor::settle(const StoreStep& s) {
  const Picture& was = s.before;
  if (!mine(s)) return lost(s, "settle: lost");
  if (is_final(was)) {
    if (!was.settled_by_owner) return lost(s, "settle: lost");
    row("settle: again");
    law(s.said == Said::ok, "settlement", "settled by them already is ok", s.scope);
    return unchanged(s, "settlement");
  }
  const bool success = (s.status >= 200 && s.status < 300) || s.status == 303;
  if (was.attempts > 1 && !s.declared && !success) {
    if (was.state == RecordState::freed) return lost(s, "settle: lost");
    row("settle: after a takeover, proves nothing");
    law(s.said == Said::became_uncertain && s.after.state == RecordState::uncertain,
        "after a takeover", "a status that proves nothing leaves the key uncertain", s.scope);
    return same_operation(s);
  }
  if (was.state == RecordState::processing) row("settle: processing");
  if (was.state == RecordState::uncertain) row("settle: uncertain");
  if (was.state == RecordState::freed) row("settle: freed");
  law(s.said == Said::ok, "settlement", "an owner settles its own generation", s.scope);
  law(s.after.settled_by_owner, "settlement", "it was settled by its owner", s.scope);
  finally(s, s.asked == Asked::complete ? RecordState::completed : RecordState::failed, s.content);
}

void Auditor::release(const StoreStep& s) {
  const Picture& was = s.before;
  const bool open = was.state == RecordState::processing || was.state == RecordState::uncertain;
  if (!mine(s) || !open) return lost(s, "release: lost");
  if (was.attempts > 1) {
    row("release: after a takeover");
    law(s.said == Said::became_uncertain && s.after.state == RecordState::uncertain,
        "after a takeover", "that this attempt did nothing proves nothing of the earlier ones",
        s.scope);
    return same_operation(s);
  }
  row(was.state == RecordState::processing ? "release: processing" : "release: uncertain");
  law(s.said == Said::ok && s.after.state == RecordState::absent, "release",
      "a release removes the record", s.scope);
}

void Auditor::mark_uncertain(const StoreStep& s) {
  const Picture& was = s.before;
  const bool open = was.state == RecordState::processing || was.state == RecordState::uncertain;
  if (!mine(s) || !open) return lost(s, "mark uncertain: lost");
  row(was.state == RecordState::processing ? "mark uncertain: processing"
                                           : "mark uncertain: uncertain");
  law(s.said == Said::ok && s.after.state == RecordState::uncertain && !s.after.by_silence,
      "mark uncertain", "what an owner saw to be unknown is uncertain under either policy",
      s.scope);
  same_operation(s);
}

void Auditor::abandon(const StoreStep& s) {
  const Picture& was = s.before;
  const bool open = was.state == RecordState::processing || was.state == RecordState::uncertain;
  if (!mine(s) || !open) return lost(s, "abandon: lost");
  law(s.said == Said::ok, "abandon", "an owner may stop", s.scope);
  same_operation(s);
  if (was.state == RecordState::processing && was.promises.takeover && was.lease_end) {
    row("abandon: takeover");
    law(s.after.state == RecordState::processing && lease_over(s.after, s.clocks), "abandon",
        "under takeover its lease is ended", s.scope);
  } else {
    row("abandon: otherwise");
    law(s.after.state == RecordState::uncertain, "abandon", "otherwise the key is uncertain",
        s.scope);
  }
}

// --- any process, operators

void Auditor::overdue(const StoreStep& s) {
  const Picture& was = s.before;
  const bool due =
      was.state == RecordState::processing && lease_over(was, s.clocks) && !was.promises.takeover;
  if (!due) {
    row("overdue: nothing to do");
    law(s.said == Said::unchanged, "overdue", "nothing is overdue", s.scope);
    return unchanged(s, "overdue");
  }
  row("overdue: uncertain");
  law(s.said == Said::became_uncertain && s.after.state == RecordState::uncertain &&
          s.after.by_silence && s.after.generation == was.generation,
      "overdue", "a silent owner leaves an uncertain key", s.scope);
  same_operation(s);
}

void Auditor::doubt(const StoreStep& s) {
  const Picture& was = s.before;
  const bool fits =
      was.state == RecordState::processing && !was.lease_end && was.generation == s.generation;
  if (!fits) return changed(s, "doubt: changed");
  row("doubt: no lease");
  law(s.said == Said::ok && s.after.state == RecordState::uncertain && !s.after.by_silence, "doubt",
      "a doubted record is uncertain", s.scope);
  same_operation(s);
}

void Auditor::resolve(const StoreStep& s) {
  const Picture& was = s.before;
  const bool open =
      was.state == RecordState::uncertain || (was.state == RecordState::processing && s.force);
  if (!open || was.generation != s.generation) return changed(s, "resolve: changed");
  if (was.state == RecordState::processing) row("resolve: by force");
  if (s.to == RecordState::completed) row("resolve: completed");
  if (s.to == RecordState::failed) row("resolve: failed");
  if (s.to == RecordState::freed) row("resolve: freed");
  law(s.said == Said::ok && !s.after.settled_by_owner, "resolve", "an operator settles it",
      s.scope);
  finally(s, s.to, s.content);
}

void Auditor::forget(const StoreStep& s) {
  const Picture& was = s.before;
  const bool fits =
      (is_final(was) || was.state == RecordState::freed) && was.generation == s.generation;
  if (!fits) return changed(s, "forget: changed");
  row("forget: settled");
  law(s.said == Said::ok && s.after.state == RecordState::absent, "forget",
      "a forgotten record is gone", s.scope);
}

void Auditor::sweep(const StoreStep& s) {
  const Picture& was = s.before;
  if (s.before == s.after) return;
  const bool removable = is_final(was) || was.state == RecordState::freed;
  law(removable, "sweep", "processing and uncertain are never swept", s.scope);
  if (s.after.state == RecordState::absent) {
    row("sweep: removed");
    return law(over(was, s.clocks), "sweep", "only what is over is removed", s.scope);
  }
  row("sweep: tombstone");
  law(seen(was, s.clocks) == Seen::tombstone && was.content && !s.after.content, "sweep",
      "a sweep takes the result from a tombstone and from nothing else", s.scope);
  Picture stripped = was;
  stripped.content.reset();
  law(s.after == stripped, "sweep", "a tombstone keeps everything but its result", s.scope);
}

}  // namespace einmal::simulation
