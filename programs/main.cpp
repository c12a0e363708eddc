#include "cli.hpp"

int main(int argc, char** argv) { return einmal::programs::run(argc, argv, einmal::no_observer()); }
