#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace einmal {

/// The folder of published vectors: $EINMAL_VECTORS, or ../shared/vectors beside the repository.
inline std::filesystem::path vectors_folder() {
  const char* given = std::getenv("EINMAL_VECTORS");
  return given != nullptr ? std::filesystem::path(given)
                          : std::filesystem::path(EINMAL_SOURCE_DIR) / "../shared/vectors";
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The files of one set, sorted; prints how many there are, or that there are none to be read.
inline std::vector<std::filesystem::path> vector_files(const std::string& set,
                                                       const std::filesystem::path& below) {
  std::vector<std::filesystem::path> files;
  const auto folder = vectors_folder() / below;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::cout << "vectors: " << set << " " << files.size() << "\n";
  if (files.empty()) std::cout << "skipped: no vectors in " << folder << "\n";
  const char* ci = std::getenv("CI");
  const bool must_be_there = ci != nullptr && std::string(ci) == "true";
  if (files.empty() && must_be_there && std::filesystem::is_directory(vectors_folder())) {
    ADD_FAILURE() << "the vectors folder is there, but nothing was read from " << folder;
  }
  return files;
}

}  // namespace einmal
