// SPDX-License-Identifier: Apache-2.0
#include "base/libcrypto.hpp"

#include <string>

#include "base/loaded_libraries.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

/// The name of a function that the library lacks; "" when it has all.
std::string lacks(const optional_library& library, libcrypto& all) {
  std::string missing;
  const auto find = [&](const char* name, auto*& function) {
    if (missing.empty() && !library.find(name, function)) missing = name;
  };
  find("HMAC", all.hmac);
  find("EVP_sha256", all.sha256);
  find("EVP_aes_256_gcm", all.aes_256_gcm);
  find("EVP_CIPHER_CTX_new", all.new_state);
  find("EVP_CIPHER_CTX_free", all.free_state);
  find("EVP_CipherInit_ex", all.begin);
  find("EVP_CipherUpdate", all.update);
  find("EVP_CipherFinal_ex", all.end);
  find("EVP_CIPHER_CTX_ctrl", all.control);
  return missing;
}

libcrypto load() {
  if (is_linked_statically()) {
    throw error(
        "what hosts of a job say to each other is proven and encrypted by OpenSSL's libcrypto, "
        "which "
        "a statically linked program cannot load: link the program dynamically");
  }
  std::string why;
  for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1"}) {
    const optional_library library(name);
    libcrypto found{};
    const std::string missing = library ? lacks(library, found) : "";
    if (library && missing.empty()) return found;
    // Tells why the newer version cannot be used, because it is the one to install.
    if (why.empty()) why = library ? "it lacks " + missing : library.why_not();
  }
  throw error(
      "jobs on several hosts need OpenSSL's libcrypto (libcrypto.so.3), which cannot be loaded: " +
      why + "; install libssl3");
}

}  // namespace

const libcrypto& crypto() {
  static const libcrypto loaded = load();
  return loaded;
}

}  // namespace sojourn::detail
