#include "einmal/base/read_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace einmal {

// Not a stream: an iterator over one throws when a directory is read.
Result<std::string> read_file(const std::string& path) {
  const auto because = [&] {
    return failure(ErrorCode::invalid,
                   path + ": cannot be read (" + std::generic_category().message(errno) + ")");
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return because();
  std::string bytes;
  std::array<char, 16384> block{};
  while (const auto size = std::fread(block.data(), 1, block.size(), file.get()))
    bytes.append(block.data(), size);
  if (std::ferror(file.get()) != 0) return because();
  return bytes;
}

}  // namespace einmal
