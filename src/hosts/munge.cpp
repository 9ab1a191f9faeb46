// SPDX-License-Identifier: Apache-2.0
// Libmunge is loaded when it is needed, so no program is linked to it; what it needs of munge.h
// (version 0.5) is declared here.
#include "hosts/munge.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/loaded_libraries.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

struct context;
constexpr int option_uid_restriction = 9;
constexpr int success = 0;
// It has been read on this host before: hosts that are namespaces of one machine share the service.
constexpr int credential_replayed = 17;

struct library {
  int (*encode)(char** credential, context*, const void* content, int bytes);
  int (*decode)(const char* credential, context*, void** content, int* bytes, uid_t*, gid_t*);
  const char* (*text_of)(int);
  context* (*create)();
  void (*destroy)(context*);
  int (*set)(context*, int option, ...);
};

std::optional<library> load() {
  const optional_library munge("libmunge.so.2");
  library l{};
  const bool is_whole =
      munge.find("munge_encode", l.encode) && munge.find("munge_decode", l.decode) &&
      munge.find("munge_strerror", l.text_of) && munge.find("munge_ctx_create", l.create) &&
      munge.find("munge_ctx_destroy", l.destroy) && munge.find("munge_ctx_set", l.set);
  if (!is_whole) return std::nullopt;
  return l;
}

}  // namespace

std::optional<std::string> munge_encode(const job_secret& secret) {
  const std::optional<library> munge = load();
  if (!munge) return std::nullopt;
  context* const how = munge->create();
  if (how == nullptr) return std::nullopt;
  char* credential = nullptr;
  const bool is_made =
      munge->set(how, option_uid_restriction, static_cast<int>(geteuid())) == success &&
      munge->encode(&credential, how, secret.data(), static_cast<int>(secret.size())) == success;
  munge->destroy(how);
  std::optional<std::string> made;
  if (is_made) made = credential;
  std::free(credential);
  return made;
}

job_secret munge_decode(const std::string& credential) {
  const std::optional<library> munge = load();
  if (!munge)
    throw error(
        "the host of rank 0 has munge, and this one has no libmunge.so.2: install munge on "
        "all hosts");
  void* content = nullptr;
  int bytes = 0;
  uid_t user = 0;
  gid_t group = 0;
  const int result = munge->decode(credential.c_str(), nullptr, &content, &bytes, &user, &group);
  job_secret secret{};
  const bool is_sound = (result == success || result == credential_replayed) &&
                        content != nullptr && bytes == static_cast<int>(secret.size()) &&
                        user == geteuid();
  if (is_sound) std::memcpy(secret.data(), content, secret.size());
  std::free(content);
  if (!is_sound) {
    const bool is_foreign =
        (result == success || result == credential_replayed) && user != geteuid();
    throw error(std::string("munge does not let this host read the job's secret: ") +
                (is_foreign ? "another user has made it" : munge->text_of(result)) +
                "; where hosts have munge, each with a key of its own, set SOJOURN_TRUST=key");
  }
  return secret;
}

}  // namespace sojourn::detail
