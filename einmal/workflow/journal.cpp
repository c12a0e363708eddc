#include "einmal/workflow/journal.hpp"

#include <algorithm>
#include <set>

namespace einmal::workflow {

namespace {

std::optional<std::string_view> take_part(BytesView& bytes) {
  if (bytes.size() < 8) return std::nullopt;
  std::uint64_t length = 0;
  for (int i = 0; i < 8; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(8);
  if (length > bytes.size()) return std::nullopt;
  const auto part = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return part;
}

}  // namespace

Bytes entry(Mark mark, std::string_view step, BytesView bytes) {
  Bytes out(1, static_cast<char>(mark));
  append_length_prefixed(out, step);
  append_length_prefixed(out, bytes);
  return out;
}

std::optional<Journal> Journal::parse(BytesView bytes) {
  Journal journal;
  while (!bytes.empty()) {
    const auto mark = static_cast<unsigned char>(bytes.front());
    if (mark < 1 || mark > 4) return std::nullopt;
    bytes.remove_prefix(1);
    const auto step = take_part(bytes);
    const auto content = step ? take_part(bytes) : std::nullopt;
    if (!content) return std::nullopt;
    journal.add(static_cast<Mark>(mark), *step, *content);
  }
  return journal;
}

void Journal::add(Mark mark, std::string_view step, BytesView bytes) {
  entries_.push_back({mark, std::string(step), Bytes(bytes)});
}

StepState Journal::of(std::string_view step) const {
  StepState state;
  for (const Entry& each : entries_) {
    if (each.step != step) continue;
    state.last = each.mark;
    if (each.mark == Mark::intent) {
      ++state.attempts;
      state.doubts = 0;
    }
    if (each.mark == Mark::doubt) ++state.doubts;
    if (each.mark == Mark::result) state.output = each.bytes;
  }
  return state;
}

bool Journal::has_effects() const {
  std::set<std::string_view> steps;
  for (const Entry& each : entries_) steps.insert(each.step);
  return std::any_of(steps.begin(), steps.end(),
                     [this](std::string_view step) { return of(step).last != Mark::cleared; });
}

}  // namespace einmal::workflow
