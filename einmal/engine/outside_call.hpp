#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

/// What a handler knows about its call to somebody outside, in types: that a call had no effect can
/// only be said by whoever can show it.

namespace einmal {

/// "This attempt certainly had no effect": what a release is made of.
class NoEffect {
 public:
  /// The other side answered, whole and readable, that it did not begin (a status defined to mean
  /// that, such as 429). A timeout, a lost connection or a status such as 503 is no such answer.
  static NoEffect told(std::string evidence) { return NoEffect(std::move(evidence)); }
  const std::string& evidence() const { return evidence_; }

 private:
  friend class OutsideCall;
  explicit NoEffect(std::string evidence) : evidence_(std::move(evidence)) {}
  std::string evidence_;
};

/// One attempt's contact with the outside. One thread at a time.
class OutsideCall {
 public:
  /// `may_send`: whether the attempt still surely owns the key.
  explicit OutsideCall(std::function<bool()> may_send) : may_send_(std::move(may_send)) {}
  OutsideCall(const OutsideCall&) = delete;
  OutsideCall& operator=(const OutsideCall&) = delete;

  /// Call it right before the first byte is handed to the kernel (or to a client library). False:
  /// send nothing. True: from now on the outcome is unknown until a whole answer was read.
  [[nodiscard]] bool first_byte() {
    if (!may_send_()) return false;
    begun_ = true;
    return true;
  }
  bool begun() const { return begun_; }

  /// Nothing once first_byte() said yes.
  std::optional<NoEffect> nothing_sent() const {
    return begun_ ? std::nullopt : std::optional(NoEffect("no byte was sent"));
  }

 private:
  std::function<bool()> may_send_;
  bool begun_ = false;
};

}  // namespace einmal
