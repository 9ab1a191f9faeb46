// SPDX-License-Identifier: Apache-2.0
// What the forks of one child function have learned. The mark of a fork is an entry of the
// exception tables, which costs nothing until the child blocks; finding it then takes a walk over
// the child's frames. Where children block often, the child is called by way of a *link*, which
// says where the mark is: some 40 instructions for each fork, and no walk. The choice between the
// two is that of Plevyak et al., Hybrid Execution, 3.2.1, where a compiler made it; here it is made
// as the program runs.
#pragma once

#include <cstdint>

#include "sojourn/detail/mark.hpp"

#if SOJOURN_FORKS_BY_TABLES && defined(__x86_64__) && !defined(__PIC__)
#define SOJOURN_FORK_LINKS 1
#else
#define SOJOURN_FORK_LINKS 0
#endif

extern "C" {
/// Not C functions (fiber/switch_x86_64.S): only the functions of a child_site jump there. The
/// first enters a site that has not forked before into the list of them all; the other calls the
/// site's child function under a link.
void sojourn_call_counted();
void sojourn_call_linked();
}

namespace sojourn::detail {

/// The part of a site that does not depend on the child's type. switch_x86_64.S knows its layout.
struct fork_site {
  std::uint64_t forks = 0;  ///< Forks by way of links; with --stats, all forks.
  /// When `forks` has reached this number, forks leave no links again; set when a child blocks.
  std::uint64_t links_until = 0;
  std::uint64_t blocked = 0;     ///< Children that have blocked.
  std::uint64_t bytes_cut = 0;   ///< How many bytes their frames had.
  std::uint64_t forked_at = 0;   ///< The return address of the site's first fork.
  fork_site* next = nullptr;     ///< In the list of all sites that have forked.
  std::uint64_t links_from = 2;  ///< When so many children have blocked, forks leave links.

  /// Notes that a child of the site was cut off. True when the site's forks use links from now on.
  bool child_was_cut();
};

template <class Function>
struct fork_site_of : fork_site {
  Function* entry;  ///< What a fork calls.
  Function* plain;  ///< The child's function.
  /// What a fork without a link calls: at first `counted`, and `plain` from the second fork on,
  /// unless all forks are counted.
  Function* unlinked;
};

/// The site of the forks of that kind that call `Plain`.
template <mark_kind Kind, auto Plain>
struct child_site;
template <mark_kind Kind, class R, class... A, R (*Plain)(A...)>
struct child_site<Kind, Plain> {
  using function = R(A...);
#if SOJOURN_FORK_LINKS
  // Without the code that compilers add to functions for profiles: it would overwrite the registers
  // that hold the arguments.
  [[gnu::naked, gnu::no_instrument_function, gnu::no_profile_instrument_function]] static R counted(
      A...) {
    asm("movl %0, %%r11d\n\tjmp sojourn_call_counted" : : "i"(&site));
  }
  [[gnu::naked, gnu::no_instrument_function, gnu::no_profile_instrument_function]] static R linked(
      A...) {
    asm("movl %0, %%r11d\n\tjmp sojourn_call_linked" : : "i"(&site));
  }
#else
  static constexpr function* counted = Plain;
  static constexpr function* linked = Plain;
#endif
  static inline constinit fork_site_of<function> site{{}, counted, Plain, counted};
};

/// Forgets the links of the running piece: from now on marks are found by walks.
void forget_fork_links();

/// What is known of the running piece's links (fiber/fork_links.hpp).
struct fork_link_state {
  /// The negated address of the youngest link; 0: none is known. Negated, because frames that may
  /// travel hold such words, which must not look like addresses of frames that stay.
  std::uint64_t youngest = 0;
  /// How many of the forks in counts.forks left a link or a mark in a frame, or were begun by other
  /// pieces. The others were begun by this piece, and have their marks in the exception tables
  /// alone.
  std::uint64_t others = 0;
};

}  // namespace sojourn::detail

extern "C" sojourn::detail::fork_link_state sojourn_fork_links;
