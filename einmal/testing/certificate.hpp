#pragma once

#include <string>

namespace einmal::test {

/// Files of a self-signed certificate that is valid for an hour, and of its key.
struct SelfSigned {
  std::string certificate, key;
};

/// Writes DIRECTORY/NAME.pem and NAME.key for the alternative name `san` ("IP:127.0.0.1",
/// "DNS:other.example").
SelfSigned make_certificate(const std::string& directory, const std::string& name,
                            const std::string& san);

}  // namespace einmal::test
