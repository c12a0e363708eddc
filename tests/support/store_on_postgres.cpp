#include <stdexcept>

#include "einmal/testing/postgres_server.hpp"
#include "support/command.hpp"
#include "support/gateway.hpp"

namespace einmal::test {

/// The same directory names the same database, as it names the same file in SQLite.
std::string new_store(const std::string& directory) {
  static PostgresServer server{{.fsync = false, .settings = {{"max_connections", "300"}}}};
  static int count = 0;
  static std::string last_directory, last_url;
  if (directory == last_directory) return last_url;
  const auto name = "einmal" + std::to_string(++count);
  ChildProcess create({"/usr/bin/createdb", "--host", server.socket_folder(), "--port",
                       std::to_string(PostgresServer::port), "--username", "postgres", name});
  const auto created = create.wait_for_exit();
  if (!created || created->status != 0) throw std::runtime_error("createdb: " + create.errors());
  last_directory = directory;
  last_url = "postgresql:///" + name + "?host=" + server.socket_folder() + "&user=postgres";
  const auto migrated = run_einmal({"migrate", "--store", last_url});
  if (migrated.status != 0) throw std::runtime_error(migrated.errors);
  return last_url;
}

}  // namespace einmal::test
