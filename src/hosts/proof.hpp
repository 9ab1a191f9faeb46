// SPDX-License-Identifier: Apache-2.0
// How processes of one job on several hosts show each other that they belong to it: each knows a
// secret that the launcher has drawn, and proves it by HMAC-SHA256 without saying it.
// (The function is that of base/libcrypto.hpp.)
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sojourn::detail {

using job_secret = std::array<unsigned char, 32>;
using proof = std::array<unsigned char, 32>;
/// A number that is used once.
using nonce = std::array<unsigned char, 16>;

/// Random bytes from the kernel. Throws an error if it gives none.
job_secret new_secret();
nonce new_nonce();

/// HMAC-SHA256 of `text`. Throws an error where libcrypto cannot be loaded.
proof prove(const job_secret& secret, std::span<const std::byte> text);

/// Why prove() would throw an error: what it would say. "" where it works.
std::string why_no_proofs();

/// Takes the same time whatever is in them, so that nobody learns from that how much of a guess was
/// right.
bool same(const proof& a, const proof& b);

/// 64 digits, for a pipe or the environment.
std::string to_hex(const job_secret& secret);
/// Nothing unless `text` is 64 hexadecimal digits.
std::optional<job_secret> secret_from_hex(std::string_view text);

}  // namespace sojourn::detail
