// SHA-256 of bytes that come in pieces; OpenSSL's EVP digest, owned.
//
//   kv::Sha256 sha256;
//   for (const rpc::Buffer& piece : chain.buffers())
//   sha256.Update(piece.view()); kv::Sha256Digest digest = sha256.Finish();
//
// Thread rule: one thread at a time. An object makes any number of digests, one
// after the other.
#ifndef VERBENA_EXAMPLES_KV_SHA256_H_
#define VERBENA_EXAMPLES_KV_SHA256_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "rpc/buffer.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace kv {

using Sha256Digest = std::array<uint8_t, 32>;

// As sha256sum prints it: 64 lower-case digits.
std::string ToHex(const Sha256Digest& digest);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::string_view bytes);
  void Update(const rpc::BufferChain& chain);
  // The digest of what was given since the last Finish.
  Sha256Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  void Start();

  const std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_SHA256_H_
