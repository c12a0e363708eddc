#include "einmal/fingerprint/canonical_writer.hpp"

#include <openssl/evp.h>

#include <memory>
#include <new>

namespace einmal {

namespace {

struct FreeMd {
  void operator()(EVP_MD* md) const { EVP_MD_free(md); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

/// Fetching an algorithm costs more than hashing a small request: once a process.
const EVP_MD* sha256_algorithm() {
  static const std::unique_ptr<EVP_MD, FreeMd> md(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  return md.get();
}

EVP_MD_CTX* thread_context() {
  static thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  return context.get();
}

}  // namespace

bool sha256_available() { return sha256_algorithm() != nullptr; }

HashWriter::HashWriter() : context_(thread_context()) {
  const EVP_MD* md = sha256_algorithm();
  if (md == nullptr || context_ == nullptr ||
      EVP_DigestInit_ex2(static_cast<EVP_MD_CTX*>(context_), md, nullptr) != 1) {
    throw std::bad_alloc();
  }
}

void HashWriter::drain(BytesView bytes) {
  if (EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size()) != 1) {
    throw std::bad_alloc();
  }
}

Digest HashWriter::finish() {
  flush();
  Digest digest;
  if (EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest.data(), nullptr) != 1) {
    throw std::bad_alloc();
  }
  return digest;
}

Digest sha256(BytesView bytes) {
  HashWriter writer;
  writer.raw(bytes);
  return writer.finish();
}

}  // namespace einmal
