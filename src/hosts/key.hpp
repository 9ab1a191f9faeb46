// SPDX-License-Identifier: Apache-2.0
// How the secret of a job reaches processes that a launcher of the site has started: what the
// launcher passes between them may be read by others, so the secret is not in it.
#pragma once

#include <optional>
#include <string>

#include "hosts/proof.hpp"

namespace sojourn::detail {

/// A secret of a job, and the word by which processes of the same user learn it:
///  - munge:CREDENTIAL, where there is munge: only this user's processes can read it;
///  - key:NUMBER: the secret is an HMAC of that number, by a key in a file of the user's that all
///    hosts have; where there is no munge, or with SOJOURN_TRUST=key;
///  - open:SECRET, where SOJOURN_TRUST=network says that whoever can read it is trusted.
struct told_secret {
  job_secret secret;
  std::string word;
};

/// A new one. Makes the file of the key where there is none. Throws sojourn::error.
told_secret draw_secret();

/// Learns it from the word. Throws sojourn::error, also where the word comes from another user.
job_secret learn_secret(const std::string& word);

/// The file of the key: what XDG_CONFIG_HOME or HOME says, and "sojourn/key". Throws
/// sojourn::error.
std::string key_file();

/// The key in the file; none where there is no such file. Throws sojourn::error when it is not this
/// user's alone, or holds something else.
std::optional<job_secret> read_key(const std::string& path);

/// Makes the file, with a new key, unless it is there meanwhile. Throws sojourn::error.
void make_key(const std::string& path);

}  // namespace sojourn::detail
