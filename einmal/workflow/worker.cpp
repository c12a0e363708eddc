#include "einmal/workflow/worker.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "einmal/workflow/run.hpp"

namespace einmal::workflow {

namespace {

bool has_local_step(const Definition& definition) {
  return std::any_of(definition.steps.begin(), definition.steps.end(),
                     [](const Step& step) { return std::holds_alternative<LocalStep>(step); });
}

Result<void> check(const Definition& definition, bool session) {
  const std::string where = "workflow " + definition.id() + ": ";
  std::set<std::string> names;
  for (const Step& step : definition.steps) {
    const auto& name = std::visit([](const auto& s) -> const std::string& { return s.name; }, step);
    // "/" separates what is staged from its steps in derived keys.
    if (name.empty() || name.find('/') != std::string::npos || !names.insert(name).second)
      return failure(ErrorCode::invalid, where + "a step has no name, one with '/', or one twice");
    const auto* external = std::get_if<ExternalStep>(&step);
    if (external && (!external->run || external->at_most <= Duration::zero()))
      return failure(ErrorCode::invalid, where + name + " lacks `run` or `at_most`");
    const auto* how = external ? std::get_if<in_doubt::Reconcile>(&external->in_doubt) : nullptr;
    if (how && (!how->ask || how->quiescence < Duration::zero()))
      return failure(ErrorCode::invalid, where + name + " lacks what Reconcile asks");
  }
  if (definition.name.empty() || definition.name.find('/') != std::string::npos ||
      !definition.finish)
    return failure(ErrorCode::invalid, where + "it needs a name without '/', and `finish`");
  if (!session && has_local_step(definition))
    return failure(ErrorCode::invalid, where + "it has a local step, the worker no session");
  return {};
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::make(Store& store, const Clock& clock, Random& random,
                                             Dependencies& dependencies,
                                             std::vector<Definition> definitions, Session* session,
                                             Observer& observer, WorkerOptions options) {
  if (!store.capabilities().workflows)
    return failure(ErrorCode::unsupported,
                   "workflow: store " + store.capabilities().name + " keeps no workflows");
  std::set<std::string> ids;
  for (const Definition& definition : definitions) {
    if (auto fine = check(definition, session != nullptr); !fine) return pass_on(fine);
    if (!ids.insert(definition.id()).second)
      return failure(ErrorCode::invalid, "workflow " + definition.id() + ": defined twice");
  }
  return std::unique_ptr<Worker>(new Worker(store, clock, random, dependencies,
                                            std::move(definitions), session, observer, options));
}

Worker::Worker(Store& store, const Clock& clock, Random& random, Dependencies& dependencies,
               std::vector<Definition> definitions, Session* session, Observer& observer,
               WorkerOptions options)
    : store_(store),
      clock_(clock),
      random_(random),
      dependencies_(dependencies),
      definitions_(std::move(definitions)),
      session_(session),
      observer_(observer),
      options_(options),
      token_(OwnerToken::draw(random)) {}

Result<bool> Worker::run_one() {
  request::PickWorkflows pick{token_, options_.lease, {}, 1};
  for (const Definition& definition : definitions_) pick.definitions.push_back(definition.id());
  const BootTime asked = clock_.boot_now();
  auto answered = ask(store_, std::move(pick));
  if (!answered) return pass_on(answered);
  auto& rows = std::get<answer::Workflows>(*answered).rows;
  if (rows.empty()) return false;
  const auto of_row =
      std::find_if(definitions_.begin(), definitions_.end(),
                   [&](const Definition& d) { return d.id() == rows[0].definition; });
  if (of_row == definitions_.end())
    return failure(ErrorCode::internal, "workflow: the store gave what was not asked for");
  Run run(*this, *of_row, std::move(rows[0]), asked);
  if (auto ran = run.go(); !ran) return pass_on(ran);
  return true;
}

void Worker::run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (!stop.stop_requested()) {
    const auto ran = run_one();
    if (ran && *ran) continue;
    const auto jitter = random_.below(static_cast<std::uint64_t>(options_.idle.count()) + 1);
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, options_.idle + Duration(jitter), [] { return false; });
  }
}

Result<answer::Advanced> settle_step(Store& store, const OperationId& id, std::uint64_t fence,
                                     const std::string& step, std::optional<Bytes> done) {
  auto read = ask(store, request::ReadWorkflow{id});
  if (!read) return pass_on(read);
  const auto& rows = std::get<answer::Workflows>(*read).rows;
  const auto journal = rows.empty() ? std::nullopt : Journal::parse(rows[0].journal);
  const bool in_doubt =
      journal && (journal->of(step).last == Mark::doubt || journal->of(step).last == Mark::intent);
  if (!in_doubt || !rows[0].stopped || rows[0].fence != fence)
    return failure(ErrorCode::invalid, "workflow: it is not stopped, has changed, or step '" +
                                           step + "' is not in doubt; look at it again");
  Bytes append = done ? entry(Mark::result, step, *done) : entry(Mark::cleared, step, "by hand");
  auto resumed = ask(store, request::ResumeWorkflow{id, fence, std::move(append)});
  if (!resumed) return pass_on(resumed);
  return std::get<answer::Advanced>(*resumed);
}

}  // namespace einmal::workflow
