// SPDX-License-Identifier: Apache-2.0
#include "rpc/dropped_results.hpp"

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "base/checked.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/thrown.hpp"
#include "fiber/ticket_table.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/programs.hpp"
#include "rpc/exceptions.hpp"
#include "sojourn/detail/marshalled.hpp"

namespace sojourn::detail {

void name_dropped(const std::exception_ptr& exception, std::uint64_t dropped_at) {
  std::string function = function_name(dropped_at);
  static std::set<std::string> named;
  if (dropped_at == 0 || is_excused(function) || !named.insert(function).second) return;
  std::fprintf(stderr,
               "sojourn: rank %d: warning: `%s` dropped the future of a call that threw %s; call "
               "get() to receive the exception (docs/pitfalls.md)\n",
               job.me, function.c_str(), text_of(exception).c_str());
}

namespace {

void name_dropped_exception(const void* bytes, std::size_t size, std::uint64_t dropped_at) {
  name_dropped(decoded(bytes, size), dropped_at);
}

void drop_here(ticket_id id, std::uint64_t dropped_at) {
  ticket* t = find_ticket(id);
  if (t == nullptr) return;
  if (t->has == outcome::none) {
    t->taken_by = taker::nobody;
    t->notify_context = reinterpret_cast<void*>(dropped_at);
    return;
  }
  if (t->has == outcome::exception && checked()) {
    name_dropped_exception(t->data(), t->bytes, dropped_at);
  }
  if (t->has == outcome::thrown && checked()) name_dropped(thrown_of(*t), dropped_at);
  if (t->has == outcome::kept) drop_kept_result(t->data(), t->bytes);
  free_ticket(t);
}

/// A rank asks to drop a ticket. In checked mode the message holds the address of the code that
/// dropped the future.
void on_drop_ticket(arrival& a) {
  ticket_id id = a.ticket;
  std::uint64_t dropped_at = 0;
  if (a.bytes == sizeof dropped_at) std::memcpy(&dropped_at, a.payload, sizeof dropped_at);
  wire().consume(a);
  drop_here(id, dropped_at);
}

}  // namespace

void attach_dropped_results() {
  on_message(runtime_message::drop_ticket, on_drop_ticket);
  on_fiber.dropped.kept = drop_kept_result;
  if (checked()) on_fiber.dropped.exception = name_dropped_exception;
}

void ticket_drop(ticket_id id) {
  std::uint64_t here = 0;
  if (checked() && running_piece() != nullptr && !runs_other_program(home_of(id))) [[unlikely]]
    here = user_code(running_piece()->hi);
  if (home_of(id) == job.me) return drop_here(id, here);
  send_reply(home_of(id), runtime_message::drop_ticket, 0, id, &here, here != 0 ? sizeof here : 0);
}

}  // namespace sojourn::detail
