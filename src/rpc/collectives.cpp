// SPDX-License-Identifier: Apache-2.0
// Collective operations over a tree of fan-out 16 whose subtrees are ranges of ranks, so that
// values are combined in rank order. A wide tree suits more ranks than cores: the ranks of a core
// are scheduled once to go up and once to come down, whatever their number. Where each rank has a
// core, a barrier has no tree: a rank tells those 1, 2, 4, ... behind it, one after the other, and
// waits for those as far before it (dissemination; Hensgen, Finkel and Manber, 1988). On two ranks
// both messages are then on their way at once; in a tree one would go up first, and then one down.
#include "sojourn/collectives.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "message/dispatcher.hpp"
#include "rpc/rpc.hpp"

namespace sojourn {
namespace detail {

void (*after_next_barrier)() = nullptr;

namespace {

constexpr int fan_out = 16;

struct contribution {
  std::uint64_t sequence;
  int source;
  collective operation;
  std::vector<std::byte> bytes;
};

std::vector<contribution> arrived;  // not yet taken
std::uint64_t sequence = 0;
ticket_id waiting = 0;  // of the fiber that waits in a collective operation; 0: none does
int missing = -1;       // the rank whose contribution that fiber waits for
collective current = collective::none;
bool program_ends = false;

/// Collective operations need a fiber, even in a job of one rank, where nothing is waited for.
void check_fiber() {
  if (running_piece() == nullptr) [[unlikely]]
    waits_outside_fiber();
}

void begin(collective operation) {
  check_fiber();
  ++sequence;
  current = std::exchange(program_ends, false) ? collective::end_of_program : operation;
}

std::string place_of(collective operation) {
  if (operation == collective::end_of_program) return "at the end of its program";
  return format("in %s()", name_of(operation));
}

/// Has the fiber that waits look again.
void look_again() {
  if (waiting == 0) return;
  complete_ticket(find_ticket(std::exchange(waiting, 0)), nullptr, 0);
}

void on_collective(arrival& a) {
  arrived.push_back(
      {a.ticket, a.source, static_cast<collective>(a.flags), {a.payload, a.payload + a.bytes}});
  wire().consume(a);
  look_again();
}

void send_to(int to, const void* bytes, std::size_t size) {
  if (size > wire().payload_max()) {
    throw error(
        format("a collective operation of %zu bytes is too large: the longest message "
               "holds %zu; use put and get",
               size, wire().payload_max()));
  }
  send_reply(to, runtime_message::collective, static_cast<std::uint16_t>(current), sequence, bytes,
             size);
}

/// Ends the job if `c` has the number of the current operation but is of another one. All ranks
/// number their operations alike, so that any contribution tells, not only that of the rank which
/// is waited for.
void check_agreement(const contribution& c) {
  if (c.sequence != sequence || c.operation == current) return;
  die("ranks disagree about a collective operation: rank %d is %s and rank %d %s; each rank must "
      "call the same ones in the same order",
      job.me, place_of(current).c_str(), c.source, place_of(c.operation).c_str());
}

/// Suspends until the contribution of `source` to the current operation is here.
std::vector<std::byte> take_from(int source) {
  for (;;) {
    for (auto& c : arrived) {
      check_agreement(c);
      if (c.sequence == sequence && c.source == source) {
        std::vector<std::byte> bytes = std::move(c.bytes);
        c = std::move(arrived.back());
        arrived.pop_back();
        return bytes;
      }
    }
    if (waiting != 0) {
      die("two fibers of one rank are in collective operations at once, this one %s; each rank "
          "must "
          "call the same ones in the same order, one after the other",
          place_of(current).c_str());
    }
    if (take_reply_in_place(source)) continue;
    if (first_lost_rank() != no_rank) throw_rank_lost(first_lost_rank(), place_of(current).c_str());
    missing = source;
    ticket_id mine = waiting = ticket_open();
    ticket_take(mine, nullptr, 0);
  }
}

/// Calls visit(child) for the children of `rank` in a tree of all ranks, in rank order.
template <class Visit>
void each_child(int rank, Visit visit) {
  for (long step = 1; step < job.count; step *= fan_out) {
    if (rank % (step * fan_out) != 0) return;
    for (int i = 1; i < fan_out; ++i) {
      long child = rank + i * step;
      if (child < job.count) visit(static_cast<int>(child));
    }
  }
}

int parent_of(int rank) {
  long step = 1;
  while (rank % (step * fan_out) == 0) step *= fan_out;
  return static_cast<int>(rank / (step * fan_out) * (step * fan_out));
}

/// Sends `value` down the tree of which `root` is the top.
void spread(void* value, std::size_t bytes, int root) {
  int me = (job.me - root + job.count) % job.count;
  auto real = [&](int r) { return (r + root) % job.count; };
  if (me != 0) {
    std::vector<std::byte> from_above = take_from(real(parent_of(me)));
    SOJOURN_CHECK(from_above.size() == bytes,
                  "ranks disagree about a collective operation: %zu bytes came, %zu are expected",
                  from_above.size(), bytes);
    if (bytes > 0) std::memcpy(value, from_above.data(), bytes);
  }
  each_child(me, [&](int child) { send_to(real(child), value, bytes); });
}

}  // namespace

void fail_collective() { look_again(); }

void attach_collectives() { on_message(runtime_message::collective, on_collective); }

const char* name_of(collective operation) {
  switch (operation) {
    case collective::barrier:
      return "barrier";
    case collective::reduce:
      return "reduce";
    case collective::broadcast:
      return "broadcast";
    case collective::gather:
      return "gather";
    case collective::end_of_program:
      return "the end of the program";
    case collective::none:
      break;
  }
  return "no collective operation";
}

void collectives_end_program() { program_ends = true; }

collective_wait collective_waiting() { return {waiting, current, missing}; }

void reduce_bytes(void* value, std::size_t bytes, combine_function combine) {
  begin(combine == nullptr ? collective::barrier : collective::reduce);
  each_child(job.me, [&](int child) {
    std::vector<std::byte> theirs = take_from(child);
    SOJOURN_CHECK(theirs.size() == bytes,
                  "ranks disagree about a collective operation: %zu bytes came, %zu are expected",
                  theirs.size(), bytes);
    if (combine != nullptr) combine(value, theirs.data());
  });
  if (job.me != 0) send_to(parent_of(job.me), value, bytes);
  ++sequence;
  spread(value, bytes, 0);
}

namespace {

void meet() {
  check_fiber();
  if (!wire().spins_for_replies()) return reduce_bytes(nullptr, 0, nullptr);
  begin(collective::barrier);
  for (int step = 1; step < job.count; step *= 2) {
    if (step != 1) ++sequence;
    send_to((job.me + step) % job.count, nullptr, 0);
    take_from((job.me - step + job.count) % job.count);
  }
}

}  // namespace

void broadcast_bytes(void* value, std::size_t bytes, int root) {
  if (root < 0 || root >= job.count) {
    throw error(format("broadcast: there is no rank %d", root));
  }
  begin(collective::broadcast);
  spread(value, bytes, root);
}

void gather_bytes(const void* value, std::size_t bytes, void* all, int root) {
  if (root >= job.count) throw error(format("gather: there is no rank %d", root));
  begin(collective::gather);
  // Subtrees are ranges of ranks: a child's bytes follow those before it.
  const auto* first = static_cast<const std::byte*>(value);
  std::vector<std::byte> mine(first, first + bytes);
  each_child(job.me, [&](int child) {
    std::vector<std::byte> theirs = take_from(child);
    mine.insert(mine.end(), theirs.begin(), theirs.end());
  });
  if (job.me != 0) send_to(parent_of(job.me), mine.data(), mine.size());
  std::size_t total = bytes * static_cast<std::size_t>(job.count);
  ++sequence;
  if (root < 0) {
    if (job.me == 0 && total > 0) std::memcpy(all, mine.data(), total);
    spread(all, total, 0);
  } else if (root == 0) {
    if (job.me == 0 && total > 0) std::memcpy(all, mine.data(), total);
  } else if (job.me == 0) {
    send_to(root, mine.data(), total);
  } else if (job.me == root) {
    std::vector<std::byte> gathered = take_from(0);
    SOJOURN_CHECK(gathered.size() == total, "ranks disagree about a gather");
    if (total > 0) std::memcpy(all, gathered.data(), total);
  }
}

namespace {

// Bytes of one value, or of all ranks' values together, that one operation carries.
constexpr std::size_t values_at_once = 4u << 20;
constexpr std::uint64_t failed_value = ~std::uint64_t{0};

[[noreturn]] void value_failed(const char* operation, int rank) {
  throw error(format("%s: rank %d could not marshal its value", operation, rank));
}

}  // namespace

value_bytes broadcast_values(value_bytes mine, bool failed, int root) {
  std::uint64_t size = failed ? failed_value : mine.size();
  broadcast_bytes(&size, sizeof size, root);
  if (size == failed_value) {
    if (job.me == root) return mine;
    value_failed("broadcast", root);
  }
  mine.resize(size);
  for (std::size_t at = 0; at < size; at += values_at_once) {
    broadcast_bytes(mine.data() + at, std::min(values_at_once, size - at), root);
  }
  return mine;
}

std::vector<value_bytes> gather_values(const value_bytes& mine, bool failed, int root) {
  auto ranks = static_cast<std::size_t>(job.count);
  std::vector<std::uint64_t> sizes(ranks);
  std::uint64_t size = failed ? failed_value : mine.size();
  gather_bytes(&size, sizeof size, sizes.data(), -1);
  auto failing = std::find(sizes.begin(), sizes.end(), failed_value);
  if (failing != sizes.end()) {
    if (failed) return {};
    value_failed("gather", static_cast<int>(failing - sizes.begin()));
  }
  std::vector<value_bytes> all;
  if (root < 0 || root == job.me) {
    for (std::uint64_t s : sizes) all.emplace_back(s);
  }
  std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::size_t chunk = std::max<std::size_t>(1, std::min(longest, values_at_once / ranks));
  value_bytes part(chunk);
  value_bytes parts(all.empty() ? 0 : chunk * ranks);
  for (std::size_t at = 0; at < longest; at += chunk) {
    std::size_t n = at < mine.size() ? std::min(chunk, mine.size() - at) : 0;
    if (n != 0) std::memcpy(part.data(), mine.data() + at, n);
    gather_bytes(part.data(), chunk, parts.data(), root);
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (at >= all[r].size()) continue;
      std::memcpy(all[r].data() + at, parts.data() + r * chunk,
                  std::min(chunk, all[r].size() - at));
    }
  }
  return all;
}

}  // namespace detail

void barrier() {
  detail::meet();
  if (detail::after_next_barrier != nullptr) [[unlikely]] {
    std::exchange(detail::after_next_barrier, nullptr)();
  }
}

}  // namespace sojourn
