#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "einmal/base/clock.hpp"
#include "einmal/base/error.hpp"
#include "einmal/base/random.hpp"
#include "einmal/client/judge.hpp"
#include "einmal/client/request.hpp"
#include "einmal/client/verdict.hpp"

namespace einmal::client {

/// What never changes about an intent: its name, its key, and the request to the byte.
struct Intent {
  std::string name;  ///< The application's words, unique in the journal.
  std::string key;
  std::string key_header;
  KeyStyle key_style = KeyStyle::bare;
  std::string method, url;
  http::HeaderLines headers;
  Bytes body;
  WallTime created{};

  /// Whether both send the same bytes, apart from the key.
  bool is_same_request(const Intent& other) const;
};

/// What is known so far.
struct Progress {
  int attempts = 0;
  Doubt doubt;  ///< Set before an attempt, so that it holds after a crash in the middle of one.
  std::optional<WallTime> first_sent;
  std::optional<Verdict> verdict;  ///< The last one; of a settled intent it is final.
  std::optional<WallTime> changed;

  bool is_settled() const { return verdict && client::is_settled(*verdict); }
};

struct Entry {
  std::int64_t id = 0;
  Intent intent;
  Progress progress;
};

/// A record whose digest does not fit. It may have been sent: its key is lost, and nothing may take
/// its place before a person has looked.
struct DamagedEntry {
  std::int64_t id = 0;
  std::string name;  ///< As it reads now; may be part of the damage.
};

struct JournalOptions {
  /// Settled intents are forgotten this long after.
  Duration keep_settled = std::chrono::hours(24 * 30);
  std::string vfs;  ///< The seam for fault injection, see sqlite_file.
};

/// The intents of one or several programs in one SQLite file (mode 0600), each change durable
/// before its call returns. Several processes may share it; an IntentLock keeps two from working on
/// one intent. The format is docs/formats/journal.md. Belongs to one thread at a time.
///
/// After kill -9 or a power cut every change that was confirmed is there. A file that was cut,
/// overwritten, emptied or belongs to somebody else is refused; a record that does not fit its
/// digest is set aside (`damaged`), and while there is one, names that the journal does not know
/// are refused as well: one of them may be the damaged one's.
class Journal {
 public:
  /// Errors: invalid (directory missing, not writable), incompatible (not a journal, or a newer
  /// one), corrupt (damaged: nothing may be sent from it), unavailable (locked, full, I/O error).
  static Result<std::unique_ptr<Journal>> open(const std::string& path, Random& random,
                                               WallTime now, JournalOptions options = {});
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// The name is in use for another request that was or may have been executed.
  struct OtherRequest {};
  /// The entry of `intent.name`, made if there is none. An entry is made anew, with the new key,
  /// if it is for another request and certainly nothing of the old one was executed. On return it
  /// is durable. Needs the intent's lock.
  Result<std::variant<Entry, OtherRequest>> begin(const Intent& intent);
  Result<std::optional<Entry>> find(const std::string& name);
  /// Makes the entry's progress durable. Errors: corrupt, if the entry is not there any more;
  /// unavailable: it is certainly as before; in_doubt.
  Result<void> save(const Entry& entry);

  enum class Which : std::uint8_t { open, all };
  /// In order of their beginning, bodies of requests and answers included.
  Result<std::vector<Entry>> list(Which which);
  Result<std::vector<DamagedEntry>> damaged();
  /// False: there is no such entry.
  Result<bool> forget(std::int64_t id);

  const std::string& path() const;

 private:
  class Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Keeps other processes, and other locks of this one, from working on an intent of that name. Ends
/// with the object or the process. (Open file description locks, fcntl(2), on `<journal>-locks`.)
class IntentLock {
 public:
  /// Nothing when another has it. Errors: unavailable.
  static Result<std::optional<IntentLock>> try_take(const std::string& journal_path,
                                                    const std::string& name);
  IntentLock(IntentLock&& other) noexcept;
  IntentLock& operator=(IntentLock&& other) noexcept;
  ~IntentLock();

 private:
  explicit IntentLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace einmal::client
