#pragma once

#include <string_view>

namespace einmal::shop {

/// A file of the demo page (shop/page), compiled in.
struct PageFile {
  std::string_view path;  ///< Without the leading slash; the page itself is "".
  const char* type;       ///< Its Content-Type.
  std::string_view text;
};

/// Null: there is no such file.
const PageFile* find_page_file(std::string_view path);

}  // namespace einmal::shop
