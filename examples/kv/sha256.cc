#include "examples/kv/sha256.h"

#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>

namespace kv {
namespace {

// OpenSSL's digest functions fail where memory is short or where SHA-256 is
// switched off in its configuration: nothing that a caller could go on from.
void CheckOpenSsl(bool ok, const char* call) {
  if (ok) return;
  std::fprintf(stderr, "%s failed: OpenSSL offers no SHA-256 here\n", call);
  std::abort();
}

}  // namespace

std::string ToHex(const Sha256Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CheckOpenSsl(context_ != nullptr, "EVP_MD_CTX_new");
  Start();
}

Sha256::~Sha256() = default;

void Sha256::Start() {
  CheckOpenSsl(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
               "EVP_DigestInit_ex");
}

void Sha256::Update(std::string_view bytes) {
  CheckOpenSsl(
      EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
      "EVP_DigestUpdate");
}

void Sha256::Update(const rpc::BufferChain& chain) {
  for (const rpc::Buffer& buffer : chain.buffers()) Update(buffer.view());
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned int size = 0;
  CheckOpenSsl(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1 &&
                   size == digest.size(),
               "EVP_DigestFinal_ex");
  Start();
  return digest;
}

}  // namespace kv
