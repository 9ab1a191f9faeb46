// SPDX-License-Identifier: Apache-2.0
// What the forks of one child function have learned. The mark of a fork is an entry of the exception
// tables, which costs nothing until the child blocks; finding it then takes a walk over the child's
// frames. Where children block often, the child is called by way of a *link*, which says where the
// mark is: some 30 instructions for each fork, and no walk. The choice between the two is that of
// Plevyak et al., Hybrid Execution, 3.2.1, where a compiler made it; here it is made as the program
// runs.
#pragma once

#include <cstdint>

#include "sojourn/detail/mark.hpp"

#if SOJOURN_FORKS_BY_TABLES && defined(__x86_64__) && !defined(__PIC__)
#define SOJOURN_FORK_LINKS 1
#else
#define SOJOURN_FORK_LINKS 0
#endif

extern "C" {
/// Calls a site's child function under a link (fiber/switch_x86_64.S). Not a C function: only
/// child_site::linked jumps to it.
void sojourn_call_linked();
}

namespace sojourn::detail {

/// The part of a site that its child's type does not matter to. Known to switch_x86_64.S.
struct fork_site {
  /// So many forks by way of a link until the site does without them again; set when a child
  /// blocks.
  std::uint32_t links_left = 0;
  /// How many children have blocked while the site did without links.
  std::uint32_t blocked = 0;

  /// A child of the site has blocked. True when its forks go by way of links from now on.
  bool child_was_cut();
};

template <class Function>
struct fork_site_of : fork_site {
  Function* entry;  ///< What a fork calls: `plain`, or child_site::linked.
  Function* plain;
};

/// The site of the forks of that kind that call `Plain`.
template <mark_kind Kind, auto Plain>
struct child_site;
template <mark_kind Kind, class R, class... A, R (*Plain)(A...)>
struct child_site<Kind, Plain> {
  using function = R(A...);
  static inline constinit fork_site_of<function> site{{}, Plain, Plain};

#if SOJOURN_FORK_LINKS
  [[gnu::naked]] static R linked(A...) {
    asm("movl %0, %%r11d\n\tjmp sojourn_call_linked" : : "i"(&site));
  }
#else
  static constexpr function* linked = Plain;
#endif
};

/// No link of the running piece is known any more: marks are found by walks.
void forget_fork_links();

}  // namespace sojourn::detail
