#include "einmal/client/journal_schema.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "einmal/sqlite_file/schema.hpp"
#include "einmal/sqlite_file/statement.hpp"

namespace einmal::client {

namespace fs = std::filesystem;
using sqlite_file::Connection;
using sqlite_file::ConnectionOptions;

namespace {

constexpr const char* steps[] = {
    R"(CREATE TABLE intent(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  key TEXT NOT NULL, key_header TEXT NOT NULL, key_style INTEGER NOT NULL,
  method TEXT NOT NULL, url TEXT NOT NULL, headers BLOB NOT NULL, body BLOB NOT NULL,
  created INTEGER NOT NULL,
  digest BLOB NOT NULL) STRICT;
CREATE TABLE progress(
  intent INTEGER PRIMARY KEY REFERENCES intent(id) ON DELETE CASCADE,
  attempts INTEGER NOT NULL, in_doubt INTEGER NOT NULL, doubt_why TEXT NOT NULL,
  first_sent INTEGER, changed INTEGER,
  verdict TEXT, why TEXT, status INTEGER, headers BLOB, body BLOB, body_cut INTEGER,
  settled INTEGER NOT NULL,
  digest BLOB NOT NULL) STRICT;)"};

constexpr std::int32_t application_id = 0x65696e6a;  // "einj"
const sqlite_file::FileKind journal_kind{application_id, "einmal journal", steps};

ConnectionOptions connection_options(const std::string& path, const JournalOptions& options) {
  ConnectionOptions wanted;
  wanted.path = path;
  wanted.kind = journal_kind;
  wanted.create = false;
  wanted.cache_kib = 2048;
  wanted.busy_limit = std::chrono::seconds(10);
  wanted.vfs = options.vfs;
  return wanted;
}

Error system_failure(const std::string& path, std::string_view doing) {
  const int why = errno;
  return {ErrorCode::unavailable,
          fmt::format("{}: cannot {}: {}", path, doing, std::strerror(why))};
}

/// A whole journal under a name of its own, for this user only.
Result<void> make_whole(const std::string& path, Random& random, const JournalOptions& options) {
  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    const bool theirs = errno == EACCES || errno == EROFS || errno == ENOENT || errno == ENOTDIR;
    Error why = system_failure(path, "create the journal");
    if (theirs) why.code = ErrorCode::invalid;
    return failure(why.code, std::move(why.message));
  }
  ::close(file);
  auto connection = Connection::open(connection_options(path, options), random);
  if (!connection) return pass_on(connection);
  auto version = sqlite_file::ensure_schema(**connection);
  if (!version) return pass_on(version);
  auto moved = (*connection)->checkpoint(Connection::CheckpointMode::truncate);
  if (!moved) return pass_on(moved);
  return {};
}

Result<void> flush_directory(const std::string& path) {
  std::string directory = fs::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && ::fsync(descriptor) == 0;
  Result<void> result;
  if (!flushed) {
    Error why = system_failure(directory, "flush the directory");
    result = failure(why.code, std::move(why.message));
  }
  if (descriptor >= 0) ::close(descriptor);
  return result;
}

void remove_all_of(const std::string& path) {
  for (const char* tail : {"", "-wal", "-shm", "-journal"}) ::unlink((path + tail).c_str());
}

Result<void> create_journal(const std::string& path, Random& random,
                            const JournalOptions& options) {
  std::array<char, 8> salt{};
  random.fill(salt.data(), salt.size());
  const std::string fresh = path + ".new-" + to_hex({salt.data(), salt.size()});
  Result<void> made = make_whole(fresh, random, options);
  // link(2) never replaces: whoever is second uses the first one's file.
  if (made && ::link(fresh.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    Error why = system_failure(path, "create the journal");
    made = failure(why.code, std::move(why.message));
  }
  remove_all_of(fresh);
  return made ? flush_directory(path) : made;
}

Error damaged_file(const std::string& path, std::string_view what) {
  return {ErrorCode::corrupt,
          fmt::format("{}: {}; nothing is sent from it, since intents in it may have been sent "
                      "before: restore it, or move it away when nothing in it is open",
                      path, what)};
}

/// Whether the tables are declared as this version declares them: a flipped byte there is no damage
/// to SQLite.
Result<bool> has_own_tables(Connection& connection) {
  auto declared = connection.prepare(
      "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'");
  if (!declared) return pass_on(declared);
  int tables = 0;
  while (true) {
    auto row = declared->step();
    if (!row) return pass_on(row);
    if (!*row) return tables == 2;
    if (std::string_view(steps[0]).find(declared->bytes(0)) == std::string_view::npos) return false;
    ++tables;
  }
}

Result<void> check_whole(Connection& connection) {
  auto own = has_own_tables(connection);
  if (!own) return pass_on(own);
  auto check = connection.prepare("PRAGMA integrity_check(1)");
  if (!check) return pass_on(check);
  auto row = check->step();
  if (!row) return pass_on(row);
  if (*own && *row && check->bytes(0) == "ok") return {};
  const Error why = damaged_file(connection.path(), "the journal is damaged");
  return failure(why.code, why.message);
}

}  // namespace

Result<std::unique_ptr<Connection>> open_journal_file(const std::string& path, Random& random,
                                                      const JournalOptions& options) {
  std::error_code ignored;
  const fs::path directory = fs::path(path).parent_path();
  if (!directory.empty() && !fs::is_directory(directory, ignored))
    return failure(ErrorCode::invalid, fmt::format("{}: the directory {} does not exist; create it",
                                                   path, directory.string()));
  if (!fs::exists(path, ignored)) {
    if (fs::exists(path + "-wal", ignored)) {
      const Error why = damaged_file(path, "the journal's main file is gone but its log is there");
      return failure(why.code, why.message);
    }
    if (auto made = create_journal(path, random, options); !made) return pass_on(made);
  } else if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) == 0) {
    const Error why = damaged_file(path, "the file is empty, which a journal never is");
    return failure(why.code, why.message);
  }
  auto connection = Connection::open(connection_options(path, options), random);
  if (!connection) return connection;
  auto version = (*connection)->query_integer("PRAGMA user_version");
  if (!version) return pass_on(version);
  if (*version < 1) {
    const Error why = damaged_file(path, "the journal has lost its tables");
    return failure(why.code, why.message);
  }
  auto brought = sqlite_file::ensure_schema(**connection);
  if (!brought) return pass_on(brought);
  if (*brought > static_cast<int>(std::size(steps))) {
    Error why = sqlite_file::newer_version(**connection, *brought);
    return failure(why.code, std::move(why.message));
  }
  if (auto whole = check_whole(**connection); !whole) return pass_on(whole);
  return connection;
}

Digest& Digest::add(std::string_view part) {
  append_length_prefixed(text_, part);
  return *this;
}

Digest& Digest::add(std::int64_t number) {
  append_u64_be(text_, static_cast<std::uint64_t>(number));
  return *this;
}

Bytes Digest::bytes() const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  if (EVP_Digest(text_.data(), text_.size(), out.data(), &size, EVP_sha256(), nullptr) != 1)
    return {};  // fits no stored digest: the record counts as damaged
  return {reinterpret_cast<const char*>(out.data()), size};
}

Bytes digest_of(const Intent& intent) {
  return Digest("einmal-intent-1")
      .add(intent.name)
      .add(intent.key)
      .add(intent.key_header)
      .add(static_cast<std::int64_t>(intent.key_style))
      .add(intent.method)
      .add(intent.url)
      .add(http::serialize(intent.headers))
      .add(intent.body)
      .add(static_cast<std::int64_t>(intent.created.time_since_epoch().count()))
      .bytes();
}

}  // namespace einmal::client
