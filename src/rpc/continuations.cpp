// SPDX-License-Identifier: Apache-2.0
#include "rpc/continuations.hpp"

#include "base/check.hpp"
#include "frames/symbols.hpp"
#include "sojourn/calls/continuation.hpp"

namespace sojourn::detail {

namespace {
std::string maker(std::uint64_t made_at) {
  // Minus 1, because a return address may be the first address behind its function.
  return made_at == 0 ? "nobody" : format("`%s`", symbolise(made_at - 1).c_str());
}
std::string text_of_dropped(std::uint64_t made_at) {
  return format(
      "the continuation that %s made was destroyed without a reply, so whoever waits for the "
      "answer would wait for ever",
      maker(made_at).c_str());
}
bool ended = false;
}  // namespace

void end_continuations() { ended = true; }

void throw_dropped(std::uint64_t made_at) { throw continuation_error(text_of_dropped(made_at)); }

void throw_no_reply_left(std::uint64_t made_at) {
  throw continuation_error(format(
      "a reply through the continuation that %s made, which has already replied or was moved "
      "from",
      maker(made_at).c_str()));
}

void fail_dropped(ticket_id id, std::uint64_t made_at) {
  if (ended) return;
  send_exception(id, std::make_exception_ptr(continuation_error(text_of_dropped(made_at))));
}

}  // namespace sojourn::detail
