#include "books_in_tests.hpp"

namespace einmal::test {

std::string new_books(const std::string& directory) { return "sqlite:" + directory + "/books.db"; }

}  // namespace einmal::test
