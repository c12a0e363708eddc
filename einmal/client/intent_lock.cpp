#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "einmal/client/journal.hpp"
#include "einmal/client/journal_schema.hpp"

namespace einmal::client {

namespace {

/// The byte of the lock file that stands for the name. Two names that meet here wait for each
/// other, nothing else.
off_t place_of(const std::string& name) {
  const Bytes digest = Digest("einmal-intent-lock").add(name).bytes();
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < 7 && i < digest.size(); ++i)
    place = place << 8 | static_cast<unsigned char>(digest[i]);
  return static_cast<off_t>(place);
}

}  // namespace

Result<std::optional<IntentLock>> IntentLock::try_take(const std::string& journal_path,
                                                       const std::string& name) {
  const std::string path = journal_path + "-locks";
  const int descriptor = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const int why = errno;
    return failure(ErrorCode::unavailable,
                   fmt::format("{}: cannot open: {}", path, std::strerror(why)));
  }
  IntentLock lock(descriptor);
  struct flock wanted = {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = place_of(name);
  wanted.l_len = 1;
  if (::fcntl(descriptor, F_OFD_SETLK, &wanted) == 0)
    return std::optional<IntentLock>(std::move(lock));
  const int why = errno;
  if (why == EAGAIN || why == EACCES) return std::optional<IntentLock>();
  return failure(ErrorCode::unavailable,
                 fmt::format("{}: cannot lock: {}", path, std::strerror(why)));
}

IntentLock::IntentLock(IntentLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

IntentLock& IntentLock::operator=(IntentLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

IntentLock::~IntentLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace einmal::client
