#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "einmal/testing/store_contract.hpp"

/// What the tests of the store contract share.
namespace einmal::testing {

using namespace std::chrono_literals;

template <class T>
T expect_answer(Store& store, Request request) {
  auto answered = ask(store, std::move(request));
  if (!answered) {
    ADD_FAILURE() << "error: " << answered.error().message;
    return {};
  }
  if (auto* answer = std::get_if<T>(&*answered)) return std::move(*answer);
  ADD_FAILURE() << "another kind of answer: " << answered->index();
  return {};
}

inline std::optional<StoredRecord> read(Store& store, const Scope& scope, bool with_body = true) {
  return expect_answer<answer::Found>(store, request::ReadScope{scope, with_body}).record;
}

inline Scope scope_of(const std::string& name_space, const std::string& caller,
                      const std::string& operation, const std::string& key) {
  return *Scope::make(name_space, caller, operation, key);
}

inline event::Claim claim_by(OwnerToken owner, Random& random) {
  event::Claim claim;
  claim.fingerprint.profile = StoreScript::profile(1).id;
  claim.owner = owner;
  claim.operation_id = OperationId::draw(random);
  claim.policies.lease = 30s;
  claim.policies.retention = 1h;
  return claim;
}

inline request::Transition transition(const Scope& scope, Event event) {
  return {scope, std::move(event), nullptr, {}};
}

/// Claims as a new owner; the record if it executes.
inline std::optional<Record> execute(Store& store, const Scope& scope, Random& random) {
  auto decided =
      ask_transition(store, transition(scope, claim_by(OwnerToken::draw(random), random)));
  if (!decided) return std::nullopt;
  auto* execute = std::get_if<decision::Execute>(&*decided);
  return execute ? std::optional(std::move(execute->record)) : std::nullopt;
}

inline Decision settle(Store& store, const Scope& scope, const Record& claimed,
                       StoredResult result) {
  event::Settle settle{event::Final::completed, claimed.generation, claimed.owner,
                       std::move(result), false};
  auto decided = ask_transition(store, transition(scope, std::move(settle)));
  if (decided) return std::move(*decided);
  ADD_FAILURE() << decided.error().message;
  return decision::Unchanged{};
}

inline StoredResult created(Bytes body = "{}") {
  StoredResult result;
  result.status = 201;
  result.body = std::move(body);
  return result;
}

inline Bytes every_byte(std::size_t size) {
  Bytes bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 % 256);
  return bytes;
}

}  // namespace einmal::testing
