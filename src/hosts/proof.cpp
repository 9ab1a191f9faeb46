// SPDX-License-Identifier: Apache-2.0
#include "hosts/proof.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/libcrypto.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

void draw(std::span<unsigned char> bytes) {
  ssize_t n;
  do {
    n = getrandom(bytes.data(), bytes.size(), 0);
  } while (n < 0 && errno == EINTR);
  // So few bytes come all at once, or not at all.
  if (n == static_cast<ssize_t>(bytes.size())) return;
  throw error(std::string("the kernel gives no random bytes for the secret of a job on several "
                          "hosts: getrandom: ") +
              std::strerror(n < 0 ? errno : EIO));
}

/// -1 where it is no hexadecimal digit.
int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

job_secret new_secret() {
  job_secret secret;
  draw(secret);
  return secret;
}

nonce new_nonce() {
  nonce fresh;
  draw(fresh);
  return fresh;
}

proof prove(const job_secret& secret, std::span<const std::byte> text) {
  const libcrypto& library = crypto();
  proof result;
  unsigned int bytes = 0;
  if (library.hmac(library.sha256(), secret.data(), static_cast<int>(secret.size()),
                   reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data(),
                   &bytes) == nullptr ||
      bytes != result.size()) {
    throw error(
        "OpenSSL's libcrypto refuses to compute HMAC-SHA256, which jobs on several hosts need; "
        "look whether its settings (openssl.cnf, OPENSSL_CONF) forbid it");
  }
  return result;
}

std::string why_no_proofs() {
  try {
    prove({}, {});
    return "";
  } catch (const error& e) {
    return e.what();
  }
}

bool same(const proof& a, const proof& b) {
  // Volatile: a compiler that sees that only zero or not matters could leave at the first
  // difference.
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

std::string to_hex(const job_secret& secret) {
  std::string text;
  text.reserve(2 * secret.size());
  for (unsigned char byte : secret) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::optional<job_secret> secret_from_hex(std::string_view text) {
  job_secret secret;
  if (text.size() != 2 * secret.size()) return std::nullopt;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    secret[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return secret;
}

}  // namespace sojourn::detail
