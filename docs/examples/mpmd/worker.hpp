// SPDX-License-Identifier: Apache-2.0
// What the master knows of the worker: names and signatures.
#pragma once

#include <sojourn/sojourn.hpp>

using square = sojourn::method<"worker.square", long(int)>;

struct tally;  // complete in the worker alone
struct tally_interface : sojourn::remote_class<tally, "tally"> {
  using create = constructor<long>;
  using add = method<"add", long(long)>;
  using value = method<"value", long() const>;
};
