#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einmal/base/bytes.hpp"

/// The journal of a workflow: what its recovery points are written as. docs/formats/workflow.md.
namespace einmal::workflow {

/// The numbers are stored.
enum class Mark : unsigned char {
  intent = 1,   ///< An attempt begins; written before it does.
  result = 2,   ///< Done; carries the output.
  cleared = 3,  ///< The attempt certainly had no effect.
  doubt = 4,    ///< Nobody knows whether the attempt had one.
};

/// One entry.
Bytes entry(Mark mark, std::string_view step, BytesView bytes = {});

/// What a journal says of one step.
struct StepState {
  Mark last = Mark::cleared;  ///< `cleared` also before the first attempt.
  int attempts = 0;           ///< Intents.
  int doubts = 0;             ///< Since the last intent.
  std::optional<Bytes> output;
};

class Journal {
 public:
  /// Nothing: these bytes are no journal of this version.
  static std::optional<Journal> parse(BytesView bytes);

  StepState of(std::string_view step) const;
  /// Whether any step is done, or may be.
  bool has_effects() const;
  void add(Mark mark, std::string_view step, BytesView bytes = {});

 private:
  struct Entry {
    Mark mark;
    std::string step;
    Bytes bytes;
  };
  std::vector<Entry> entries_;
};

}  // namespace einmal::workflow
