// SPDX-License-Identifier: Apache-2.0
// The words with which programs reach their objects: one table, for `--via` of the applications and
// for the rows of `sojourn bench policies`. A word that is added to it is in all of them.
#pragma once

#include <sojourn/sojourn.hpp>

#include <array>

namespace apps {

/// `--via NAME`
struct policy {
  const char* name;
  sojourn::via how;
};
inline constexpr std::array policies{
    policy{"rpc", sojourn::via::rpc}, policy{"migrate", sojourn::via::migrate},
    policy{"cache", sojourn::via::cache}, policy{"fetch", sojourn::via::fetch},
    policy{"automatic", sojourn::via::automatic}};

inline const char* name_of(sojourn::via how) {
  for (const policy& p : policies) {
    if (p.how == how) return p.name;
  }
  return "another way";
}

/// `--via shared`, of programs that have a second form, whose data lie in shared memory.
inline constexpr const char* shared_form = "shared";

}  // namespace apps
