// Journals in which bytes were changed: refused, or a record is set aside, or it reads as it was
// written. Never another request under a known name, and never a crash.

#include "einmal/base/random.hpp"
#include "einmal/client/journal.hpp"
#include "patched_file.hpp"

namespace {

using namespace einmal;
using namespace einmal::client;

Intent intent(const std::string& name) {
  Intent made;
  made.name = name;
  made.key = "key-of-" + name;
  made.key_header = "Idempotency-Key";
  made.method = "POST";
  made.url = "http://127.0.0.1:1/orders";
  made.headers.add("Content-Type", "application/json");
  made.body = "{\"item\":\"" + name + "\"}";
  return made;
}

struct Template {
  Template() {
    SeededRandom random(1);
    auto journal = Journal::open(directory.file(), random, WallTime{});
    EINMAL_EXPECT(journal.has_value());
    for (const auto* name : {"one", "two", "three"}) {
      auto begun = (*journal)->begin(intent(name));
      EINMAL_EXPECT(begun.has_value());
    }
    journal->reset();
    bytes = read_file(directory.file());
    EINMAL_EXPECT(bytes.find("key-of-two") != std::string::npos);  // Not left in the log.
  }
  FuzzDirectory directory;
  std::string bytes;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Template whole;
  const auto path = whole.directory.with(patched(whole.bytes, input_text(data, size)));
  SeededRandom random(2);
  const auto journal = Journal::open(path, random, WallTime{});
  if (!journal) return 0;
  const auto entries = (*journal)->list(Journal::Which::all);
  static_cast<void>((*journal)->damaged());
  if (!entries) return 0;
  for (const auto& entry : *entries) {
    // What is handed out fits its digest, so it is one of those that were written.
    EINMAL_EXPECT(entry.intent.key == "key-of-" + entry.intent.name);
    EINMAL_EXPECT(entry.intent.is_same_request(intent(entry.intent.name)));
  }
  return 0;
}
