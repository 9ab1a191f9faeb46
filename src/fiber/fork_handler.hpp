// SPDX-License-Identifier: Apache-2.0
// Entering the handler of a fork whose mark is only in the tables, after its child was cut off: the
// handler runs as if the child had thrown the ticket of its result.
#pragma once

#include <unwind.h>

#include <array>
#include <cstdint>
#include <typeinfo>

#include "fiber/boundary.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/handler_context.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// The type of the object thrown, which lies behind `exception`. Null for an exception rethrown
/// from a std::exception_ptr, and for one that C++ did not throw.
const std::type_info* thrown_type(const _Unwind_Exception* exception);

/// The state with which the older side of a mark in the tables goes on in its handler.
struct handler_entry {
  std::array<std::uint64_t, preserved_registers> registers;
  std::uint64_t sp;
  std::uint64_t landing;
  std::uint64_t selector;
  cut_of_child how_cut = left_for_elsewhere;
};
/// Separates the younger frames from the older ones at `b`, a mark in the tables: afterwards the
/// younger frames hold no register values of the older side, and return to child_finish.
handler_entry separate(const boundary& b);
/// Goes on in that handler at once. `result`: the ticket of the child that was cut off, which the
/// handler receives in the exception.
[[noreturn]] void enter_handler(const handler_entry& entry, ticket_id result);
/// Writes to `to` a context (handler_context.hpp) with which the scheduler can do the same later.
void write_handler_context(void* to, const boundary& b, const handler_entry& entry,
                           ticket_id result);

}  // namespace sojourn::detail
