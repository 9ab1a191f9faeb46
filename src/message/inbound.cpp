// SPDX-License-Identifier: Apache-2.0
#include "message/inbound.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "fiber/held_mutexes.hpp"
#include "fiber/hooks.hpp"
#include "fiber/piece.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/waiters.hpp"
#include "frames/code_owner.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "memory/address_map.hpp"
#include "message/bundle_table.hpp"
#include "message/bundles.hpp"
#include "message/dispatcher_state.hpp"
#include "message/message_reader.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"

namespace sojourn::detail {

namespace {

// How many blocked computations a rank keeps before it refuses calls. (The images of so many take a
// GiB.)
constexpr std::size_t fibers_max = 2'000'000;

std::vector<user_handler>& user_handlers() {
  // Filled before main, in any order of initialisation; the fixed ones stand first.
  static std::vector<user_handler> table(static_cast<std::size_t>(fixed_handler::count_));
  return table;
}
/// The handlers of the runtime's own messages. A message of fewer bytes than `least` is refused.
struct bounded_handler {
  runtime_handler run = nullptr;
  std::size_t least = ~std::size_t{0};
};
bounded_handler runtime_handlers[first_user_handler];

struct handler_call {
  request_handler run;
  request message;
};

SOJOURN_CALLS_PROGRAM void run_user_handler(void* context) {
  auto* call = static_cast<handler_call*>(context);
  call->run(call->message);
}

SOJOURN_CALLS_PROGRAM void run_rest_of_bundle(void* context) {
  rest_of_bundle(static_cast<handler_call*>(context)->message);
}

bool all_handlers_may_wait = false;

void consume_call(const arrival& a) {
  if (a.source == job.me) return dispatcher.own.consume();
  dispatcher.transport->consume(a);
}

void deliver_to_user(arrival& a) {
  std::size_t index = a.handler - first_user_handler;
  if (index >= dispatcher.handler_count) {
    die("a message from rank %d names handler %zu, and this program has only %zu: it does not come "
        "from this program",
        a.source, index, dispatcher.handler_count);
  }
  void* scope = nullptr;
  if (!is_of_this_job(a.ticket)) [[unlikely]]
    refuse_arrival(a, "asks for an answer to a rank that does not exist");
  if (a.flags & flag_scope) {
    message_reader from(a);
    scope = on_dispatch.scopes.give(a, from.take_last<scope_ticket>());
    a.bytes = from.left();
  }
  if (fibers_unfinished() > fibers_max) [[unlikely]] {
    ticket_id answer = a.ticket;
    int source = a.source;
    consume_call(a);
    if (answer == 0)
      die("more than %zu computations are blocked on this rank, and rank %d sends another call: "
          "start fewer at a time",
          fibers_max, source);
    on_fiber.result.exception(
        answer, std::make_exception_ptr(
                    error(format("rank %d refuses a call: more than %zu computations are blocked "
                                 "there; start fewer at a time",
                                 job.me, fibers_max))));
    if (scope != nullptr) on_fiber.scope.left(scope);
    return;
  }
  ++counts.handlers_run;
  const user_handler& handler = dispatcher.handlers[index];
  handler_call call{handler.run,
                    {a.payload, static_cast<std::uint32_t>(a.bytes), a.source, a.ticket, &a}};
  // A handler that never waits runs here, outside of any fiber, except if there are scopes or
  // bundles, which need a fiber, or in checked mode, whose reports say more about a fiber.
  const bool promises = handler.promises != nullptr && !all_handlers_may_wait;
  if (promises && scope == nullptr && bundles_waiting == 0 && !checked()) {
    begin_promise(promise_of_handler::nonblocking, handler.promises);
    handler.run(call.message);
    if (running.mutexes != nullptr) [[unlikely]]
      ended_with_mutexes();
    end_promise();
    return;
  }
  const bool bundled = is_bundle(handler.run);
  if (promises) begin_promise(promise_of_handler::nonblocking, handler.promises);
  const call_origin origin{a.source, a.ticket};
  handler_end end =
      run_handler(run_user_handler, &call, !handler.may_migrate, scope, origin, !bundled);
  if (promises) end_promise();
  while (bundled && end == handler_end::fiber_waits) {
    if (scope != nullptr) on_fiber.scope.joined(scope);
    end = run_handler(run_rest_of_bundle, &call, true, scope, origin);
  }
  if (scope != nullptr && end == handler_end::returned) on_fiber.scope.left(scope);
}

}  // namespace

bool deliver(arrival& a, void*) {
  if (counts_as_traffic(a.handler)) {
    ++dispatcher.moved.received;
  } else {
    ++dispatcher.moved_collective.received;
  }
  if (a.handler < first_user_handler) {
    const bounded_handler& handler = runtime_handlers[a.handler];
    if (a.bytes < handler.least) [[unlikely]]
      refuse_arrival(a, "is shorter than any of its kind");
    handler.run(a);
  } else {
    deliver_to_user(a);
  }
  return anything_ready();
}
bool deliver_all(arrival& a, void*) {
  (void)deliver(a, nullptr);
  return false;
}

int deliver_own() {
  int delivered = 0;
  do {
    ++dispatcher.moved.received;
    arrival a = dispatcher.own.next();
    deliver_to_user(a);
    ++delivered;
  } while (!dispatcher.own.empty() && !anything_ready() && delivered < messages_a_round);
  return delivered;
}

void on_message(runtime_message kind, runtime_handler handler, std::size_t least) {
  runtime_handlers[static_cast<std::size_t>(kind)] = {handler, least};
}

std::uint16_t register_request_handler(request_handler handler, bool may_migrate,
                                       const char* promises, std::size_t keeps) {
  if (is_in_job()) {
    die("a library that calls functions of other ranks is loaded inside run(), when all ranks have "
        "numbered such functions: load it before run(), on every rank");
  }
  auto& table = user_handlers();
  table.push_back({handler, may_migrate, promises, keeps});
  std::size_t index = table.size() - 1 + first_user_handler;
  if (index > 0xffff) die("a program has at most 65,000 different remote calls");
  return static_cast<std::uint16_t>(index);
}

namespace {

// The handlers that run now and must not wait, one within the other: the compiler's names for what
// they call. Errors name the innermost. Calls are refused while any of them has promised
// nonblocking.
struct open_promise {
  const char* promised = nullptr;
  promise_of_handler promise{};
  bool refuses_requests = false;
  unsigned open_runs = 0;  // open_run_count before the promise; it is 0 during the promise, so that
                           // no call is bundled
};
constexpr std::size_t promises_most = 8;
open_promise promises[promises_most];
std::size_t promises_open = 0;
const char* promised = nullptr;
promise_of_handler promise;

std::string_view name_of_promised() {
  // Compilers write "… [with F = name]".
  std::string_view name = promised;
  std::size_t begin = name.find("= ");
  if (begin != std::string_view::npos) name = name.substr(begin + 2, name.size() - begin - 3);
  return name;
}

[[noreturn, gnu::cold]] void promise_was_broken() {
  const std::string_view name = name_of_promised();
  const int length = static_cast<int>(name.size());
  if (promise == promise_of_handler::view) {
    die("`%.*s` takes a sojourn::view, and waited or migrated while its arguments lay in the "
        "message; "
        "a function that waits takes std::span<const T> or std::string_view (docs/marshalling.md)",
        length, name.data());
  }
  die("`%.*s` promised not to wait (sojourn::nonblocking), and waited or migrated: call it without "
      "the promise (docs/aggregation.md), and ff_visit in place of a container's ff_update",
      length, name.data());
}

}  // namespace

void begin_promise(promise_of_handler what, const char* called) {
  SOJOURN_CHECK(promises_open < promises_most, "more than %zu promises in one another",
                promises_most);
  promises[promises_open++] = {promised, promise, dispatcher.refuses_requests, open_run_count};
  promise = what;
  promised = called;
  if (what != promise_of_handler::nonblocking) return;
  dispatcher.refuses_requests = true;
  open_run_count = 0;
}
void end_promise() {
  const open_promise& before = promises[--promises_open];
  promised = before.promised;
  promise = before.promise;
  dispatcher.refuses_requests = before.refuses_requests;
  open_run_count = before.open_runs;
}

void refuse_request_of_nonblocking() {
  std::string name(name_of_promised());
  if (name.find("(*)") != name.npos) {
    // The name is only the type of a function pointer. The function itself is found on the stack.
    const piece* self = running_piece();
    const std::uint64_t code = user_code(
        self != nullptr ? self->hi : addresses.worker_stack() + address_map::worker_stack_bytes);
    if (code != 0) name = function_name(code);
  }
  die("`%.*s` promised not to wait (sojourn::nonblocking), and calls, which may wait for room: "
      "call it without the promise (docs/aggregation.md), and ff_visit in place of a container's "
      "ff_update",
      static_cast<int>(name.size()), name.data());
}

void on_request(fixed_handler which, request_handler handler, bool may_migrate) {
  user_handlers()[static_cast<std::size_t>(which)] = {handler, may_migrate};
}

void attach_inbound() {
  // Copied to memory that the scan ignores, because addresses of the table are left on many stacks.
  const auto& table = user_handlers();
  auto* handlers = runtime_array<user_handler>(table.size() + 1);
  std::copy(table.begin(), table.end(), handlers);
  dispatcher.handlers = handlers;
  dispatcher.handler_count = table.size();
  on_fiber.waits_outside = [] {
    if (promised != nullptr) promise_was_broken();
  };
  on_fiber.made = [](piece* p) {
    if (promised != nullptr) [[unlikely]]
      promise_was_broken();
    if (p->is_thread_base()) on_fiber.thread.here(p);
  };
}

void request::consume() { consume_call(*from); }

std::uint16_t handler_of(const request& message) { return message.from->handler; }

bool starts_thread(std::uint16_t handler, std::size_t bytes) {
  const std::size_t index = std::size_t{handler} - first_user_handler;
  if (index >= dispatcher.handler_count) return false;
  const std::size_t keeps = dispatcher.handlers[index].keeps;
  return keeps != 0 && bytes >= keeps;
}

void let_all_handlers_wait(bool yes) { all_handlers_may_wait = yes; }

void run_contained(std::uint16_t handler, request& message) {
  const std::size_t index = std::size_t{handler} - first_user_handler;
  if (index >= dispatcher.handler_count)
    die("a message from rank %d holds a call of handler %zu, and this program has only %zu: it "
        "does "
        "not come from this program",
        message.source, index, dispatcher.handler_count);
  dispatcher.handlers[index].run(message);
}

void run_kept(std::uint16_t handler, const request& message, void* scope) {
  const user_handler& h = dispatcher.handlers[handler - first_user_handler];
  handler_call call{h.run, message};
  const handler_end end =
      run_handler(run_user_handler, &call, !h.may_migrate, scope, {message.source, message.ticket});
  if (scope != nullptr && end == handler_end::returned) on_fiber.scope.left(scope);
}

}  // namespace sojourn::detail
