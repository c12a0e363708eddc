#pragma once

#include <string_view>
#include <vector>

namespace einmal::postgres {

/// One file of schema/, compiled in.
struct SchemaStep {
  int version = 0;
  std::string_view name;
  std::string_view sql;
};

/// In ascending order of version; generated from the files at build time.
const std::vector<SchemaStep>& schema_steps();

/// The version that this build writes and needs: that of the last step.
inline int schema_version() { return schema_steps().back().version; }

}  // namespace einmal::postgres
