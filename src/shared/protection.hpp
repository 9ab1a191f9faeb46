// SPDX-License-Identifier: Apache-2.0
// What the program may do with each page of its view of the shared region, enforced by the kernel
// in one of two ways:
//
//   userfaultfd  by bits in the page tables; costs the same however the pages alternate
//   mprotect     works everywhere; but each run of pages with the same access is a mapping, and a
//                process may have only vm.max_map_count of them
//
// The kernel may allow less than was asked for: when mappings run out, neighbours of a page are
// closed with it, and opened again by the fault that follows. It never allows more.
#pragma once

#include <cstdint>
#include <memory>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

class protection {
 public:
  virtual ~protection() = default;
  virtual const char* name() const = 0;

  /// Says that these pages have just been mapped in both views, and that the program's view allows
  /// nothing: from now on protect() may be called for them. Throws sojourn::error.
  virtual void cover(page_range range) = 0;
  /// Changes what pages allow. All of them allow `from`, as far as the caller knows. A failure ends
  /// the rank with a sentence.
  virtual void protect(page_range range, access from, access to) = 0;

  /// How often pages were closed although nobody had asked for it.
  std::uint64_t closed_early() const { return closed_early_; }

 protected:
  std::uint64_t closed_early_ = 0;
};

enum class protection_way : std::uint8_t { any, userfaultfd, mprotect };
/// The way that SOJOURN_SHARED_PROTECTION names. Throws sojourn::error when it names none.
protection_way protection_from_environment();

/// Makes a protection of the wanted way; `any` is userfaultfd where that works, and mprotect
/// elsewhere. Throws sojourn::error when the wanted way does not work. Requires: map_region was
/// called, and nothing is mapped in the shared region.
std::unique_ptr<protection> choose_protection(protection_way wanted);

std::unique_ptr<protection> protect_by_mprotect();
/// Throws sojourn::error, with the reason, when a trial on one page shows that this way does not
/// work here.
std::unique_ptr<protection> protect_by_userfaultfd();

/// Tries whether the program's view of a page allows the wanted access. Requires: as for
/// survives_faults (base/faults.hpp).
bool allows(page_number page, access wanted);

}  // namespace sojourn::detail::pages
