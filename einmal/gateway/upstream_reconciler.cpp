#include "einmal/gateway/upstream_reconciler.hpp"

#include <algorithm>
#include <utility>

#include "einmal/gateway/config_text.hpp"
#include "einmal/gateway/small_exchange.hpp"

namespace einmal::gateway {

namespace {

/// What is read of an answer at most; a list of every order is not one operation's outcome.
constexpr std::size_t answer_limit = std::size_t{4} << 20;

const Operation* find(const Settings& settings, const Scope& scope) {
  if (scope.name_space() != settings.config.name_space) return nullptr;
  const auto at = std::find_if(
      settings.operations.begin(), settings.operations.end(),
      [&](const auto& each) { return each.reconcile && each.config.name == scope.operation(); });
  return at == settings.operations.end() ? nullptr : &*at;
}

/// One question under way. Keeps what it was asked with.
struct Question {
  std::shared_ptr<const Settings> settings;
  const Operation* operation;
  http::RequestHead head;
  std::function<void(OutcomeFinding)> done;
};

Async<> put(std::unique_ptr<Question> question) {
  const Operation& operation = *question->operation;
  std::optional<SmallAnswer> answer = co_await exchange(*question->settings->pool, question->head,
                                                        operation.config.times, answer_limit);
  question->done(answer ? operation.reconcile->judge(*answer) : operation.reconcile->no_answer());
}

}  // namespace

bool UpstreamReconciler::is_wanted() const {
  const auto& operations = core_.settings->operations;
  return std::any_of(operations.begin(), operations.end(),
                     [](const Operation& each) { return each.reconcile.has_value(); });
}

std::optional<ReconcileRules> UpstreamReconciler::rules(const Scope& scope) {
  const Operation* operation = find(*core_.settings, scope);
  if (operation == nullptr) return std::nullopt;
  ReconcileRules rules;
  rules.name = operation->config.name;
  rules.quiescence = operation->config.quiescence;
  return rules;
}

void UpstreamReconciler::ask(const StoredRecord& record, std::function<void(OutcomeFinding)> done) {
  const Operation* operation = find(*core_.settings, record.scope);
  if (operation == nullptr) {  // A new configuration reconciles it no more.
    core_.loop.post([done = std::move(done)] { done({}); });
    return;
  }
  auto question = std::make_unique<Question>();
  question->settings = core_.settings;
  question->operation = operation;
  question->head = operation->reconcile->request(record.scope, record.record.operation_id);
  const auto& address = core_.settings->config.upstream.addresses.front();
  question->head.headers.add("Host", show(address.address));
  question->done = std::move(done);
  core_.loop.spawn(put(std::move(question)));
}

}  // namespace einmal::gateway
