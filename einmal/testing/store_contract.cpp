#include "einmal/testing/store_contract.hpp"

#include <sstream>

#include "einmal/testing/describe.hpp"

namespace einmal::testing {

void StoreTest::SetUp() {
  home_ = GetParam().make(clock_);
  store_ = home_->open();
  script_ = std::make_unique<StoreScript>(*store_);
}

void StoreTest::reopen() {
  store_.reset();
  store_ = home_->open();
  script_->use(*store_);
}

std::string StoreTest::play(const std::string& script) {
  std::string answer;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream words(line);
    std::string verb, argument;
    words >> verb >> argument;
    if (verb == "wait") {
      clock_.advance(duration_of(argument));
    } else if (verb == "jump") {
      clock_.jump_wall(duration_of(argument));
    } else if (verb == "reboot") {
      clock_.reboot();
      reopen();
    } else {
      answer = describe(script_->run(line));
    }
  }
  return answer;
}

std::string StoreTest::condition_of(const std::string& key) {
  auto answered = ask(*store_, request::ReadScope{StoreScript::scope(key), false});
  if (!answered) return "error";
  const auto* found = std::get_if<answer::Found>(&*answered);
  if (!found) return "not a record";
  return std::string(name(found->record ? found->record->condition : Condition::absent));
}

}  // namespace einmal::testing
