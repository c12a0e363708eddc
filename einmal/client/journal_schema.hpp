#pragma once

#include <memory>
#include <string>

#include "einmal/base/random.hpp"
#include "einmal/client/journal.hpp"
#include "einmal/sqlite_file/connection.hpp"

/// The journal's file: how it comes into being, what is in a row and how its digests are made.
/// Described in docs/formats/journal.md.

namespace einmal::client {

/// Opens a journal, or makes a whole one and moves it into place at once: a file of that name that
/// is empty or lacks its tables is damage, never a new journal.
Result<std::unique_ptr<sqlite_file::Connection>> open_journal_file(const std::string& path,
                                                                   Random& random,
                                                                   const JournalOptions& options);

/// A SHA-256 over length-prefixed parts.
class Digest {
 public:
  explicit Digest(std::string_view domain) { add(domain); }
  Digest& add(std::string_view part);
  Digest& add(std::int64_t number);
  Bytes bytes() const;

 private:
  Bytes text_;
};

Bytes digest_of(const Intent& intent);

}  // namespace einmal::client
