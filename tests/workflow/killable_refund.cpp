#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "refund.hpp"

/// The refund of the examples, with an observer that says where the worker is and kills the process
/// with -9 at the nth point: EINMAL_DIE_AT=N.
namespace {

class KillAt final : public einmal::workflow::Observer {
 public:
  explicit KillAt(int nth) : left_(nth) {}
  void at(einmal::workflow::Point point, const einmal::OperationId&,
          std::string_view step) override {
    std::printf("at %s %s\n", std::string(name(point)).c_str(), std::string(step).c_str());
    std::fflush(stdout);
    if (--left_ == 0) std::raise(SIGKILL);
  }

 private:
  int left_;
};

}  // namespace

int main(int count, char** values) {
  const char* nth = std::getenv("EINMAL_DIE_AT");
  KillAt observer(nth ? std::atoi(nth) : 0);
  return einmal::refund::main_with(count, values, observer);
}
