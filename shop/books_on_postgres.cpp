#include <memory>
#include <vector>

#include "books_in_tests.hpp"
#include "einmal/postgres/pg_fixture.hpp"

namespace einmal::test {

/// A database without any schema: the shop makes what it needs.
std::string new_books(const std::string&) {
  static std::vector<std::unique_ptr<Database>> databases;
  const auto& made = databases.emplace_back(std::make_unique<Database>(false));
  return "postgresql:///" + made->name() + "?host=" + shared_server().socket_folder() +
         "&user=postgres";
}

}  // namespace einmal::test
