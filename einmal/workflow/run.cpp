#include "einmal/workflow/run.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "einmal/core/derived_key.hpp"
#include "einmal/core/limits.hpp"
#include "einmal/store/run_in_transaction.hpp"

namespace einmal::workflow {

namespace {

constexpr const char* local_dependency = "local database";

/// Parts with their lengths before them.
class Parts {
 public:
  explicit Parts(BytesView bytes) : left_(bytes) {}
  std::optional<Bytes> next() {
    if (left_.size() < 8) return std::nullopt;
    std::uint64_t length = 0;
    for (int i = 0; i < 8; ++i) length = length << 8 | static_cast<unsigned char>(left_[i]);
    left_.remove_prefix(8);
    if (length > left_.size()) return std::nullopt;
    Bytes part(left_.substr(0, length));
    left_.remove_prefix(length);
    return part;
  }
  bool empty() const { return left_.empty(); }

 private:
  BytesView left_;
};

}  // namespace

Bytes encode_done(const said::Done& done) {
  Bytes out;
  append_length_prefixed(out, done.output);
  for (const Staged& staged : done.staged) {
    append_length_prefixed(out, staged.definition);
    append_length_prefixed(out, staged.name);
    append_length_prefixed(out, staged.input);
  }
  return out;
}

std::optional<said::Done> decode_done(BytesView bytes) {
  Parts parts(bytes);
  auto output = parts.next();
  if (!output) return std::nullopt;
  said::Done done{std::move(*output), {}};
  while (!parts.empty()) {
    auto definition = parts.next(), name = parts.next(), input = parts.next();
    if (!definition || !name || !input) return std::nullopt;
    done.staged.push_back({std::move(*definition), std::move(*name), std::move(*input)});
  }
  return done;
}

class Run::Context final : public StepContext {
 public:
  Context(const Run& run, const std::string& step, int attempt)
      : run_(run), path_(run.path(step)), attempt_(attempt) {
    for (const Step& each : run.definition_.steps) {
      const auto& name =
          std::visit([](const auto& s) -> const std::string& { return s.name; }, each);
      auto state = run.journal_.of(name);
      if (state.output) outputs_.emplace_back(name, std::move(*state.output));
    }
  }
  const Scope& scope() const override { return run_.row_.scope; }
  OperationId id() const override { return run_.row_.id; }
  const Bytes& input() const override { return run_.row_.input; }
  const Bytes* output(std::string_view step) const override {
    for (const auto& [name, output] : outputs_) {
      if (name == step) return &output;
    }
    return nullptr;
  }
  std::string derived_key() const override { return derive_key(run_.row_.scope, path_); }
  std::string derived_uuid() const override { return derive_uuid(run_.row_.scope, path_); }
  int attempt() const override { return attempt_; }

 private:
  const Run& run_;
  const std::string path_;
  const int attempt_;
  std::vector<std::pair<std::string, Bytes>> outputs_;
};

Run::Run(Worker& worker, const Definition& definition, WorkflowRow row, BootTime picked)
    : worker_(worker), definition_(definition), row_(std::move(row)), held_(picked) {}

Result<void> Run::go() {
  at(Point::picked);
  auto journal = Journal::parse(row_.journal);
  if (!journal) {  // damaged, or written by a build that knows more: nothing is guessed
    auto ended = stop({}, {});
    return ended ? Result<void>() : pass_on(ended);
  }
  journal_ = std::move(*journal);
  for (const Step& step : definition_.steps) {
    auto ended = std::visit([this](const auto& s) { return do_step(s); }, step);
    if (!ended) return pass_on(ended);
    if (*ended) return {};
  }
  at(Point::finishing);
  const StoredResult result = definition_.finish(Context(*this, {}, 1));
  auto ended = finish(event::Final::completed, result);
  return ended ? Result<void>() : pass_on(ended);
}

// --- local steps

Result<Run::Ended> Run::do_step(const LocalStep& step) {
  if (journal_.of(step.name).last == Mark::result) return Ended();
  TransactionRequest request{
      *Scope::make(row_.scope.name_space(), row_.scope.caller(), row_.scope.operation(),
                   derive_key(row_.scope, path(step.name))),
      {},
      {}};
  request.policies.retention = std::min(worker_.options_.remember_local_steps, max_retention);
  request.policies.after_expiry = AfterExpiry::refuse;
  request.policies.tombstone = max_tombstone;
  const Context context(*this, step.name, 1);
  const auto handler = [&](const Attempt&) -> HandlerOutcome {
    LocalOutcome outcome = step.run(context);
    if (auto* refused = std::get_if<said::Refused>(&outcome))
      return handled::Failed{std::move(refused->result)};
    StoredResult result;
    result.status = 200;
    result.body = encode_done(std::get<said::Done>(outcome));
    return handled::Completed{std::move(result)};
  };
  std::optional<Result<Ran>> ran;
  try {
    ran = run_in_transaction(*worker_.session_, request, handler);
  } catch (const std::exception&) {
    return local_delayed(step, Duration::zero());
  }
  if (!*ran) {
    const bool again = ran->error().code == ErrorCode::unavailable ||
                       ran->error().code == ErrorCode::in_doubt;  // it is remembered if it happened
    return again ? local_delayed(step, Duration::zero()) : Result<Ended>(pass_on(*ran));
  }
  if (const auto* executed = std::get_if<ran::Executed>(&**ran)) return local_ran(step, *executed);
  if (const auto* replayed = std::get_if<ran::Replayed>(&**ran))
    return local_ran(step, {replayed->result, replayed->failed, replayed->operation_id});
  if (const auto* busy = std::get_if<ran::InProgress>(&**ran))
    return local_delayed(step, busy->retry_after);
  return stop(entry(Mark::doubt, step.name), step.name);
}

Result<Run::Ended> Run::local_ran(const LocalStep& step, const ran::Executed& executed) {
  at(Point::local_committed, step.name);
  if (executed.failed) return refuse(executed.result);
  const auto done = decode_done(executed.result.body);
  if (!done) return stop(entry(Mark::doubt, step.name), step.name);
  return keep(step.name, *done);
}

Result<Run::Ended> Run::local_delayed(const LocalStep& step, Duration at_least) {
  // The attempts of a local step are not in the journal; the age of the row says enough.
  const Duration pause = worker_.dependencies_.pause(local_dependency, 4);
  return delay(std::max(at_least, pause), {}, step.name);
}

// --- external steps

Result<Run::Ended> Run::do_step(const ExternalStep& step) {
  const StepState state = journal_.of(step.name);
  switch (state.last) {
    case Mark::result:
      return Ended();
    case Mark::cleared:
      return call(step, state);
    case Mark::intent:  // whoever began this attempt never said how it ended
    case Mark::doubt:
      return look_into(step, state);
  }
  return Ended();
}

Result<Run::Ended> Run::call(const ExternalStep& step, const StepState& before) {
  if (before.attempts >= step.attempts) return exhausted(step, before);
  Dependencies& dependencies = worker_.dependencies_;
  const Duration not_before = dependencies.admit(step.dependency, before.attempts > 0);
  if (not_before > Duration::zero()) return delay(not_before, {}, step.name);

  const Bytes intent = entry(Mark::intent, step.name);
  auto held = advance(request::HoldWorkflow{step.at_most + worker_.options_.margin}, intent);
  if (!held || !*held) {
    dependencies.withdrawn(step.dependency);
    return ended_by(std::move(held), Point::lost, step.name);
  }
  journal_.add(Mark::intent, step.name);
  at(Point::intent_durable, step.name);

  const BootTime last_first_byte = held_ + worker_.options_.margin;
  OutsideCall outside([&] { return worker_.clock_.boot_now() < last_first_byte; });
  const int attempt = before.attempts + 1;
  ExternalOutcome outcome = said::Unknown{"it threw"};
  try {
    outcome = step.run(Context(*this, step.name, attempt), outside);
  } catch (const std::exception& error) {
    outcome = said::Unknown{error.what()};
  }
  at(Point::call_ended, step.name);
  const bool reached =
      std::holds_alternative<said::Done>(outcome) || std::holds_alternative<said::Refused>(outcome);
  dependencies.ended(step.dependency, reached);
  if (const auto* done = std::get_if<said::Done>(&outcome)) return keep(step.name, *done);
  if (const auto* refused = std::get_if<said::Refused>(&outcome)) return refuse(refused->result);
  if (const auto* not_now = std::get_if<said::NotNow>(&outcome))
    return call_failed(step, attempt, Mark::cleared, not_now->proof.evidence());
  return call_failed(step, attempt, Mark::doubt, std::get<said::Unknown>(outcome).why);
}

/// What comes after an attempt that brought no result.
Result<Run::Ended> Run::call_failed(const ExternalStep& step, int attempt, Mark mark,
                                    const Bytes& why) {
  Bytes append = entry(mark, step.name, why);
  if (mark == Mark::doubt) {
    if (std::holds_alternative<in_doubt::Stop>(step.in_doubt))
      return stop(std::move(append), step.name);
    if (const auto* how = std::get_if<in_doubt::Reconcile>(&step.in_doubt))
      return delay(step.at_most + how->quiescence, std::move(append), step.name);
  }
  return delay(worker_.dependencies_.pause(step.dependency, attempt), std::move(append), step.name);
}

Result<Run::Ended> Run::look_into(const ExternalStep& step, const StepState& state) {
  if (std::holds_alternative<in_doubt::Stop>(step.in_doubt))
    return stop(entry(Mark::doubt, step.name), step.name);
  if (std::holds_alternative<in_doubt::Resend>(step.in_doubt)) return call(step, state);
  const auto& how = std::get<in_doubt::Reconcile>(step.in_doubt);
  // The lease of that attempt is over, but what it sent may still be on its way.
  if (state.last == Mark::intent)
    return delay(step.at_most + how.quiescence, entry(Mark::doubt, step.name), step.name);
  return ask(step, how, state);
}

Result<Run::Ended> Run::ask(const ExternalStep& step, const in_doubt::Reconcile& how,
                            const StepState& state) {
  auto held = advance(request::HoldWorkflow{step.at_most + worker_.options_.margin});
  if (!held || !*held) return ended_by(std::move(held), Point::lost, step.name);
  in_doubt::Found found = said::Unknown{"asking threw"};
  try {
    found = how.ask(Context(*this, step.name, state.attempts));
  } catch (const std::exception& error) {
    found = said::Unknown{error.what()};
  }
  if (const auto* done = std::get_if<said::Done>(&found)) return keep(step.name, *done);
  if (const auto* refused = std::get_if<said::Refused>(&found)) return refuse(refused->result);
  if (std::holds_alternative<in_doubt::Absent>(found)) {
    const Bytes cleared = entry(Mark::cleared, step.name, "absent");
    return delay(worker_.dependencies_.pause(step.dependency, state.attempts), cleared, step.name);
  }
  Bytes doubt = entry(Mark::doubt, step.name, std::get<said::Unknown>(found).why);
  if (state.doubts >= how.attempts) return stop(std::move(doubt), step.name);
  return delay(worker_.dependencies_.pause(step.dependency, state.doubts), std::move(doubt),
               step.name);
}

Result<Run::Ended> Run::exhausted(const ExternalStep& step, const StepState& state) {
  const bool nothing_happened = !row_.owner.is_nil() && !journal_.has_effects();
  if (nothing_happened && state.last == Mark::cleared) return release();
  return stop({}, step.name);
}

// --- what becomes of the row

Result<Run::Ended> Run::keep(const std::string& step, const said::Done& done) {
  std::vector<request::StagedWorkflow> staged;
  for (const Staged& each : done.staged) {
    staged.push_back(
        {OperationId::draw(worker_.random_), each.definition, path(each.name), each.input});
  }
  auto kept = advance(request::HoldWorkflow{worker_.options_.lease},
                      entry(Mark::result, step, done.output), std::move(staged));
  if (!kept || !*kept) return ended_by(std::move(kept), Point::lost, step);
  journal_.add(Mark::result, step, done.output);
  at(Point::result_durable, step);
  return Ended();
}

Result<Run::Ended> Run::refuse(const StoredResult& result) {
  return finish(event::Final::failed, result);
}

Result<Run::Ended> Run::delay(Duration by, Bytes append, std::string_view step) {
  const bool doubt = !append.empty() && append.front() == static_cast<char>(Mark::doubt);
  auto advanced =
      advance(request::DelayWorkflow{std::min(by, max_workflow_delay)}, std::move(append));
  if (advanced && *advanced && doubt) at(Point::doubt_durable, step);
  return ended_by(std::move(advanced), Point::delayed, step);
}

Result<Run::Ended> Run::stop(Bytes append, std::string_view step) {
  return ended_by(advance(request::StopWorkflow{}, std::move(append)), Point::stopped, step);
}

Result<Run::Ended> Run::release() {
  return ended_by(advance(request::ReleaseWorkflow{}), Point::finished);
}

Result<Run::Ended> Run::finish(event::Final outcome, const StoredResult& result) {
  return ended_by(advance(request::FinishWorkflow{outcome, result}), Point::finished);
}

Result<Run::Ended> Run::ended_by(Result<bool> advanced, Point point, std::string_view step) {
  if (!advanced) return pass_on(advanced);
  at(*advanced ? point : Point::lost, step);
  return Ended(true);
}

Result<bool> Run::advance(request::WorkflowNext next, Bytes append,
                          std::vector<request::StagedWorkflow> staged) {
  if (row_.journal.size() + append.size() > max_workflow_journal_bytes)
    return failure(ErrorCode::invalid, "workflow: its journal would have more than 16 MiB");
  row_.journal += append;
  const BootTime asked = worker_.clock_.boot_now();
  auto answered =
      einmal::ask(worker_.store_,
                  request::AdvanceWorkflow{row_.id, worker_.token_, row_.fence, std::move(append),
                                           std::move(staged), std::move(next)});
  if (!answered) return pass_on(answered);
  held_ = asked;
  return std::get<answer::Advanced>(*answered) == answer::Advanced::done;
}

}  // namespace einmal::workflow
