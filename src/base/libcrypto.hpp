// SPDX-License-Identifier: Apache-2.0
// OpenSSL's libcrypto, which is loaded when one of its functions is first needed. Jobs of one host
// need none of them, so nothing is linked to the library, and it need not be installed for such
// jobs.
#pragma once

#include <cstddef>

namespace sojourn::detail {

/// The functions that are used. They are declared here, so that OpenSSL's headers are not needed to
/// build Sojourn. Versions 1.1 and 3 have them in the same form.
struct libcrypto {
  struct digest;
  struct cipher;
  struct cipher_state;

  unsigned char* (*hmac)(const digest* kind, const void* key, int key_bytes,
                         const unsigned char* text, std::size_t text_bytes, unsigned char* result,
                         unsigned int* result_bytes);
  const digest* (*sha256)();

  const cipher* (*aes_256_gcm)();
  cipher_state* (*new_state)();
  void (*free_state)(cipher_state*);
  int (*begin)(cipher_state*, const cipher* kind, void* engine, const unsigned char* key,
               const unsigned char* nonce, int encrypts);
  int (*update)(cipher_state*, unsigned char* to, int* to_bytes, const unsigned char* from,
                int from_bytes);
  int (*end)(cipher_state*, unsigned char* to, int* to_bytes);
  int (*control)(cipher_state*, int what, int bytes, void* data);
  static constexpr int get_tag = 0x10;  ///< EVP_CTRL_AEAD_GET_TAG
  static constexpr int set_tag = 0x11;  ///< EVP_CTRL_AEAD_SET_TAG
};

/// Throws sojourn::error, at each call, when the library cannot be loaded.
const libcrypto& crypto();

}  // namespace sojourn::detail
