// SPDX-License-Identifier: Apache-2.0
#include "shared/protection.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/check.hpp"
#include "base/faults.hpp"
#include "shared/page_views.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail::pages {

namespace {

int protection_bits(access a) {
  switch (a) {
    case access::none:
      return PROT_NONE;
    case access::load:
      return PROT_READ;
    default:
      return PROT_READ | PROT_WRITE;
  }
}

class by_mprotect final : public protection {
 public:
  const char* name() const override { return "mprotect"; }

  void cover(page_range range) override { covered_ = std::uint64_t{range.first} + range.count; }

  void protect(page_range range, access from, access to) override {
    // Touches pages that nobody has touched yet, so that the system provides memory for them. If it
    // has none, this fault in the runtime's view says so. The same fault in the program's view
    // would look like an access that is not allowed, again and again.
    for (std::uint32_t i = 0; from == access::none && i < range.count; ++i)
      (void)*reinterpret_cast<volatile char*>(runtime_page(range.first + i));
    const std::uint64_t end = std::uint64_t{range.first} + range.count;
    if (!set(range.first, end, to)) [[unlikely]]
      join_and_set(range.first, end, to);
  }

 private:
  static bool set(std::uint64_t first, std::uint64_t end, access to) {
    return mprotect(program_page(static_cast<page_number>(first)), (end - first) * page_bytes,
                    protection_bits(to)) == 0;
  }

  /// To be called when the process has as many mappings as it may. Closes the pages around the
  /// range, which joins their mappings into one, and ever more pages until there is room for the
  /// change.
  void join_and_set(std::uint64_t first, std::uint64_t end, access to) {
    constexpr std::uint64_t least = (2u << 20) / page_bytes;
    for (std::uint64_t span = least; errno == ENOMEM; span *= 2) {
      const std::uint64_t from = first / span * span;
      const std::uint64_t until = std::min((end + span - 1) / span * span, covered_);
      if (set(from, until, access::none)) {
        if (++closed_early_ == 1) tell();
        if (set(first, end, to)) return;
      }
      if (from == 0 && until == covered_) break;
    }
    die("the access to pages of shared memory cannot be changed (mprotect: %s); if other libraries "
        "map memory in thousands of places, raise vm.max_map_count",
        std::strerror(errno));
  }

  static void tell() {
    char rank[32] = "";
    if (job.count > 1) std::snprintf(rank, sizeof rank, "rank %d: ", job.me);
    std::fprintf(stderr,
                 "sojourn: %sthis process has as many mappings as vm.max_map_count allows, so "
                 "pages of shared memory are closed early, which costs faults: raise "
                 "vm.max_map_count, or allow the system call userfaultfd\n",
                 rank);
  }

  std::uint64_t covered_ = 0;  ///< How many pages are mapped.
};

}  // namespace

std::unique_ptr<protection> protect_by_mprotect() { return std::make_unique<by_mprotect>(); }

protection_way protection_from_environment() {
  const char* set = std::getenv("SOJOURN_SHARED_PROTECTION");
  const std::string_view wanted = set != nullptr ? set : "";
  if (wanted.empty()) return protection_way::any;
  if (wanted == "mprotect") return protection_way::mprotect;
  if (wanted == "userfaultfd") return protection_way::userfaultfd;
  throw error(
      format("SOJOURN_SHARED_PROTECTION=%s is neither userfaultfd nor mprotect: choose one of "
             "these, or leave the variable out",
             set));
}

std::unique_ptr<protection> choose_protection(protection_way wanted) {
  if (wanted == protection_way::mprotect) return protect_by_mprotect();
  if (wanted == protection_way::userfaultfd) return protect_by_userfaultfd();
  try {
    return protect_by_userfaultfd();
  } catch (const error&) {
    return protect_by_mprotect();
  }
}

bool allows(page_number page, access wanted) {
  const auto load = [](void* at) { (void)*static_cast<volatile char*>(at); };
  const auto store = [](void* at) {
    auto* byte = static_cast<volatile char*>(at);
    *byte = *byte;
  };
  if (wanted == access::none) return true;
  return survives_faults(wanted == access::load ? +load : +store, program_page(page));
}

}  // namespace sojourn::detail::pages
