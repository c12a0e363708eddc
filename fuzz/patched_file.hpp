#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "expect.hpp"

/// A valid file in which a fuzzer changes bytes: `offset (3 bytes, little endian), length (1 byte),
/// bytes`, repeated; an offset of FFFFFF cuts the file to length * 512 bytes.

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string patched(std::string file, std::string_view patches) {
  while (patches.size() >= 4) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(patches[i]); };
    const std::size_t offset = at(0) | std::size_t{at(1)} << 8U | std::size_t{at(2)} << 16U;
    std::size_t length = at(3);
    patches.remove_prefix(4);
    if (offset == 0xFFFFFF) {
      if (length * 512 < file.size()) file.resize(length * 512);
      continue;
    }
    length = std::min(length, patches.size());
    for (std::size_t i = 0; i < length && !file.empty(); ++i)
      file[(offset + i) % file.size()] = patches[i];
    patches.remove_prefix(length);
  }
  return file;
}

/// A directory that goes with the process.
class FuzzDirectory {
 public:
  FuzzDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "einmal-fuzz-XXXXXX").string();
    EINMAL_EXPECT(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~FuzzDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FuzzDirectory(const FuzzDirectory&) = delete;
  FuzzDirectory& operator=(const FuzzDirectory&) = delete;

  /// The file with these bytes and nothing beside it.
  std::string with(const std::string& bytes) const {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      std::filesystem::remove(entry.path());
    std::ofstream(file(), std::ios::binary) << bytes;
    return file();
  }
  std::string file() const { return (path_ / "file.db").string(); }

 private:
  std::filesystem::path path_;
};
