#include "refund.hpp"

/// einmal_refund DATABASE SHOP_URL ORDER [--honours-keys] [--fault F]
int main(int count, char** values) {
  return einmal::refund::main_with(count, values, einmal::workflow::no_workflow_observer());
}
