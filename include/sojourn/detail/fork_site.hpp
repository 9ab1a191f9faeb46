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

/// The part of a site that its child's type does not matter to. Known to switch_x86_64.S.
struct fork_site {
  std::uint64_t forks = 0;  ///< Those by way of links; with --stats, all.
  /// From so many forks on the site does without links again; set when a child blocks.
  std::uint64_t links_until = 0;
  std::uint64_t blocked = 0;     ///< Children that have blocked.
  std::uint64_t bytes_cut = 0;   ///< Of the frames of those.
  std::uint64_t forked_at = 0;   ///< Where it forked first: a return address.
  fork_site* next = nullptr;     ///< In the list of all that have forked.
  std::uint64_t links_from = 2;  ///< From so many blocked children on, forks leave links.

  /// A child of the site was cut off. True when its forks go by way of links from now on.
  bool child_was_cut();
};

template <class Function>
struct fork_site_of : fork_site {
  Function* entry;  ///< What a fork calls.
  Function* plain;  ///< The child's function.
  /// What a fork calls without links: what counts it; `plain` from the first fork on, unless all
  /// are counted.
  Function* unlinked;
};

/// The site of the forks of that kind that call `Plain`.
template <mark_kind Kind, auto Plain>
struct child_site;
template <mark_kind Kind, class R, class... A, R (*Plain)(A...)>
struct child_site<Kind, Plain> {
  using function = R(A...);
#if SOJOURN_FORK_LINKS
  // What compilers add to functions for profiles would use the registers of the arguments.
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

/// No link of the running piece is known any more: marks are found by walks.
void forget_fork_links();

/// What is known of the running piece's links (fiber/fork_links.hpp).
struct fork_link_state {
  /// Of the youngest link its negated address: the bytes of frames that may travel hold such words,
  /// which must not look like addresses in frames that stay. 0: none is known.
  std::uint64_t youngest = 0;
  /// Of counts.forks those that left a link or a mark in a frame, and those of other pieces. The
  /// rest has been begun by this piece and left its mark in the tables alone.
  std::uint64_t others = 0;
};

}  // namespace sojourn::detail

extern "C" sojourn::detail::fork_link_state sojourn_fork_links;
