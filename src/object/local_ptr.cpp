// SPDX-License-Identifier: Apache-2.0
#include "sojourn/local_ptr.hpp"

#include "base/check.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

void refuse_local_ptr(std::uint64_t address) {
  throw error(
      format("local_ptr: rank %d has no heap at 0x%llx: it points to memory that is not in "
             "the global heap, or to another rank's while heaps are not shared (--share off)",
             job.me, static_cast<unsigned long long>(address)));
}

}  // namespace sojourn::detail
