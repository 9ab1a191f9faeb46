// SPDX-License-Identifier: Apache-2.0
#include "message/bundles.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "fiber/block.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "frames/code_owner.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "message/bundle_table.hpp"
#include "message/dispatcher_state.hpp"
#include "message/losses.hpp"
#include "message/outbound.hpp"
#include "message/programs.hpp"
#include "sojourn/calls/aggregate.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

open_run* open_runs = nullptr;
unsigned open_run_count = 0;
opened_bundle opened{};

namespace {

constexpr std::size_t bytes_min = 256;
constexpr std::size_t bytes_max = std::size_t{1} << 20;
// A busy rank reads the clock, to find old bundles, once in this many rounds; a power of two.
constexpr unsigned looks_at_the_clock = 16;

std::vector<const bundled_function*>& functions() {
  static std::vector<const bundled_function*> table;  // filled before main, in any order
  return table;
}

unsigned bundling = 0;  // how many callers have asked for bundles
aggregation chosen;

/// Bundles calls as `how` says from now on.
void begin_bundling(const aggregation& how) {
  if (how.bytes < bytes_min || how.bytes > bytes_max) {
    throw error(format("a bundle cannot have %zu bytes: give a size from %zu to %zu", how.bytes,
                       bytes_min, bytes_max));
  }
  chosen = how;
  chosen.bytes = how.bytes / 8 * 8;
  if (bundles == nullptr) {
    const auto ranks = static_cast<std::size_t>(job.count);
    bundles = runtime_array<bundle>(ranks);
    auto* runs = runtime_array<open_run>(ranks);
    for (std::size_t to = 0; to < ranks; ++to) bundles[to].open = runs + to;
  }
  ++bundling;
  open_runs = bundles[0].open;
  open_run_count = static_cast<unsigned>(job.count);
}

void end_bundling(const aggregation& before) {
  chosen = before;
  if (--bundling == 0) open_run_count = 0;
}

/// Gives an empty bundle memory of the size that is wanted now. Part of it is left for the ticket
/// of the bundle's scope, which goes in the same message.
void make_room(bundle& b) {
  if (b.memory != chosen.bytes) {
    if (b.memory != 0) runtime_resource()->deallocate(b.first, b.memory);
    b.memory = chosen.bytes;
    b.first = static_cast<std::byte*>(runtime_resource()->allocate(b.memory));
    b.open->next = b.first;
  }
  b.end = b.first + b.memory - (b.open->scope != nullptr ? sizeof(scope_ticket) : 0);
}

void handle_bundle(request& message);
const bool is_registered = [] {
  bundle_handler = register_request_handler(handle_bundle, false);
  return true;
}();

// The end of the bundle that is being run, and the function that runs the calls of its current run.
const std::byte* bundle_end;
bundled_handler run_of_calls;

[[noreturn, gnu::cold]] void malformed(const request& message, const char* what) {
  die("a bundle of calls from rank %d %s: it does not come from this program", message.source,
      what);
}

/// Runs calls to the end of the bundle, or until one has blocked and another stack has taken over
/// the rest.
SOJOURN_CALLS_PROGRAM void go_through(request& message) {
  const std::uint64_t mine = opened.reader;
  while (opened.next != bundle_end) {
    if (opened.next == opened.run_end) {
      run_header header;
      const auto rest = static_cast<std::size_t>(bundle_end - opened.next);
      if (rest < sizeof header) malformed(message, "ends in the middle");
      std::memcpy(&header, opened.next, sizeof header);
      if (header.handler >= functions().size())
        malformed(message, "names a function that does not exist");
      const bundled_function& called = *functions()[header.handler];
      const std::size_t before = header_bytes_of(called);
      const std::size_t unit = called.stride == 0 ? 1 : called.stride;
      if (rest < before || header.count > (rest - before) / unit) {
        malformed(message, "ends in the middle");
      }
      if (called.has_object)
        std::memcpy(&opened.object, opened.next + sizeof header, sizeof opened.object);
      opened.next += before;
      opened.run_end = opened.next + std::size_t{header.count} * unit;
      if (called.stride != 0) counts.handlers_run += header.count;
      run_of_calls = called.run;
    }
    run_of_calls();
    if (opened.reader != mine) return;
  }
  message.consume();
}

void handle_bundle(request& message) {
  --counts.handlers_run;  // the bundle itself is not a call
  opened.next = message.payload;
  opened.run_end = message.payload;
  bundle_end = message.payload + message.bytes;
  go_through(message);
}

}  // namespace

bundled_function::bundled_function(bundled_handler runs, std::uint32_t bytes, bool of_object)
    : run(runs),
      stride(bytes),
      handler(static_cast<std::uint32_t>(functions().size())),
      has_object(of_object) {
  functions().push_back(this);
  if (functions().size() > 0xffff) die("a program has at most 65,000 different remote calls");
}

namespace {

/// False when calls to this rank that count in `scope` have to be sent alone.
bool can_bundle(int to, void* scope) {
  if (runs_other_program(to)) return false;
  // Calls that count one by one go alone, and a call that has to wait for weight.
  return scope == nullptr || (!static_cast<const scope_view*>(scope)->is_window &&
                              on_dispatch.scopes.available(scope) != 0);
}

/// Polling at sends (MRPC §4.2). Without it, if two ranks did nothing but send, the first one to
/// find no room would run all calls of the other one, which would always find room and run none.
/// Each turn takes one message, so there are two for each one sent. A handler takes no turn: the
/// rank polls anyhow when it ends.
void poll_after_send() {
  for (int turn = 0; turn < 2; ++turn) give_turn();
}

/// Begins an empty bundle for calls that count in `scope`. Returns false when calls to this rank
/// have to be sent alone.
bool begin_bundle(bundle& b, int to, void* scope) {
  if (!can_bundle(to, scope)) return false;
  scope_ticket weight{};
  if (scope != nullptr) {
    weight = on_dispatch.scopes.take(scope);
    // The bundle counts as a computation of its scope, so that the scope's account on this rank
    // stays. Calls are compared with the account's address, which must not become that of another
    // scope meanwhile.
    on_fiber.scope.joined(scope);
  }
  b.open->scope = scope;
  make_room(b);
  b.weight = weight;
  b.since = now_ns();
  begin_to_hold_back(to);
  return true;
}

/// Calls whose length differs take their room one by one.
std::byte* begin_run(bundle& b, const bundled_function& called, std::uint64_t object) {
  b.open->called = &called;
  b.open->object = object;
  b.open->last = b.end - called.stride;
  b.run = b.open->next;
  std::byte* at = b.run + header_bytes_of(called);
  b.open->next = at + called.stride;
  return at;
}

}  // namespace

std::byte* room_in_new_run(int to, const bundled_function& called, std::uint64_t object,
                           std::size_t bytes) {
  if (dispatcher.refuses_requests) [[unlikely]]
    refuse_request_of_nonblocking();
  if (running_piece() == nullptr) [[unlikely]]
    waits_outside_fiber();
  const std::size_t least = header_bytes_of(called) + bytes;
  for (;;) {
    // Looked at again after each send, which may suspend: meanwhile other fibers may have filled
    // the bundle, and this thread may have been moved; then `bundles` is another rank's, or null.
    if (static_cast<unsigned>(to) >= open_run_count ||
        least + sizeof(scope_ticket) > chosen.bytes || is_lost(to)) {
      return nullptr;
    }
    bundle& b = bundles[to];
    void* scope = running_piece()->scope;
    if (b.is_empty()) return begin_bundle(b, to, scope) ? begin_run(b, called, object) : nullptr;
    if (b.open->scope == scope && b.room() >= least) {
      b.close_run();
      return begin_run(b, called, object);
    }
    // A handler does not wait for room: it would become a fiber, and with it all that send before
    // the rank reads messages again. Its bundles wait instead.
    const bool in_handler = running_piece() == spare_piece();
    if (!try_send_bundle(to) && !(in_handler && put_bundle_aside(to))) send_bundle(to);
    if (!in_handler) poll_after_send();
  }
}

bool send_run_now(int to, const bundled_function& called, std::uint64_t object,
                  const std::byte* payloads, std::size_t count) {
  void* const scope = running_piece()->scope;
  if (!can_bundle(to, scope)) return false;
  const std::size_t before = header_bytes_of(called);
  const std::size_t bytes = before + count * called.stride;
  const std::size_t all = bytes + (scope != nullptr ? sizeof(scope_ticket) : 0);
  std::byte* const room = all <= chosen.bytes ? room_for_run(to, all) : nullptr;
  if (room == nullptr) return false;
  write_run_header(room, called, object, static_cast<std::uint32_t>(count));
  std::memcpy(room + before, payloads, count * called.stride);
  counts.calls_bundled += count;
  const scope_ticket weight = scope != nullptr ? on_dispatch.scopes.take(scope) : scope_ticket{};
  commit_runs(to, room, bytes, weight, scope != nullptr);
  if (running_piece() != spare_piece()) poll_after_send();
  return true;
}

std::size_t bytes_of_a_run() {
  // Together they fit into the nearer caches.
  constexpr std::size_t all = std::size_t{256} << 10;
  constexpr std::size_t least = 512;
  constexpr std::size_t most = std::size_t{16} << 10;
  constexpr std::size_t beside = sizeof(run_header) + sizeof(std::uint64_t) + sizeof(scope_ticket);
  if (open_run_count == 0 || chosen.bytes < least + beside) return least;
  return std::clamp(all / open_run_count, least, std::min(most, chosen.bytes - beside));
}

void refuse_bundled_values() {
  die("a bundle of calls ends in the middle of one: it does not come from this program");
}

bool is_bundle(request_handler handler) { return handler == handle_bundle; }

void rest_of_bundle(request& message) {
  ++opened.reader;
  go_through(message);
}

int send_due_bundles(bool idle) {
  static unsigned looks = 0;
  if (!idle && ++looks % looks_at_the_clock != 0) return 0;
  const std::uint64_t now = idle ? 0 : now_ns();
  const auto age = static_cast<std::uint64_t>(std::max<std::int64_t>(chosen.age.count(), 0));
  int sent = 0;
  for (int to = 0; to < job.count && bundles_waiting != 0; ++to) {
    const bundle& b = bundles[to];
    if (b.is_empty() || (!idle && now - b.since < age)) continue;
    sent += try_send_bundle(to);
  }
  return sent;
}

void attach_bundles() {
  const char* text = std::getenv("SOJOURN_AGGREGATE");
  if (text == nullptr || std::strcmp(text, "off") == 0) return;
  if (std::strcmp(text, "on") != 0) {
    throw error(format("SOJOURN_AGGREGATE=%s is neither on nor off", text));
  }
  begin_bundling({});
}

}  // namespace sojourn::detail

namespace sojourn {

aggregated::aggregated(const aggregation& how) : before_(detail::chosen) {
  detail::begin_bundling(how);
}

aggregated::~aggregated() {
  detail::end_bundling(before_);
  if (detail::open_run_count == 0) flush();
}

void flush() {
  for (int to = 0; detail::bundles_waiting != 0 && to < detail::job.count; ++to) {
    detail::send_bundle(to);
  }
}

}  // namespace sojourn
