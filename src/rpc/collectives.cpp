// SPDX-License-Identifier: Apache-2.0
// Who runs the steps of a collective operation: the fiber that waits in it, or tasks, one whenever
// a contribution comes.
#include "sojourn/collectives.hpp"

#include <memory>
#include <utility>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "message/dispatcher.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/collective_steps.hpp"
#include "rpc/hooks.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn {
namespace detail {

rpc_hooks on_rpc;

void collective_values::absorb(int, value_bytes&&) {}
byte_span collective_values::up() { return {}; }
void collective_values::take(value_bytes&&) {}
byte_span collective_values::down(int) { return {}; }

collective_plan rooted(collective_plan plan, int root, const team& among) {
  if (root < 0 || root >= among.rank_count()) {
    throw error(format("%s: there is no rank %d", name_of(plan.what), root));
  }
  plan.root = root;
  return plan;
}

void values_disagree(std::size_t came, std::size_t expected) {
  die("ranks disagree about a collective operation: %zu bytes have arrived instead of %zu; all "
      "ranks must pass values of the same type",
      came, expected);
}
void wrong_number_of_values(std::size_t values, std::size_t members) {
  throw error(
      format("all_to_all: %zu values were passed, and %zu ranks need one each", values, members));
}
void different_lengths(std::size_t a, std::size_t b) {
  throw error(
      format("elementwise: ranks passed ranges of different lengths, %zu and %zu elements", a, b));
}
byte_span next_block(byte_span& left) {
  block_header header{};
  if (left.size() < sizeof header) malformed("values of a gather end too early");
  std::memcpy(&header, left.data(), sizeof header);
  left = left.subspan(sizeof header);
  if (header.bytes > left.size()) malformed("a value of a gather is longer than its message");
  const byte_span block = left.first(header.bytes);
  left = left.subspan(std::min(left.size(), header.bytes + padding(header.bytes, sizeof header)));
  return block;
}

// ---- A fiber that waits ------------------------------------------------------------------------

namespace {

/// While it lives, a fiber of this rank is in an operation.
class fiber_in_operation {
 public:
  fiber_in_operation(team_record& among, collective what) : open_(open_next(among, what)) {
    if (std::exchange(among.has_fiber, true)) {
      die("two fibers of one rank are in collective operations at the same time, this one %s; all "
          "ranks must call the same operations in the same order, one after the other",
          place_of(open_.what).c_str());
    }
  }
  ~fiber_in_operation() {
    open_.among->has_fiber = false;
    close_operation(open_);
  }
  fiber_in_operation(const fiber_in_operation&) = delete;
  fiber_in_operation& operator=(const fiber_in_operation&) = delete;
  open_collective& operator*() { return open_; }

 private:
  open_collective& open_;
};

/// Suspends until the missing contribution may have come.
void wait_for_missing(open_collective& o) {
  if (take_reply_in_place(o.missing)) return;
  if (const int lost = lost_member(*o.among); lost != no_rank) {
    throw_rank_lost(lost, place_of(o.what).c_str());
  }
  const ticket_id mine = o.ticket = ticket_open();
  ticket_take(mine, nullptr, 0);
}

void barrier_is_over(const collective_plan& plan, const team& among) {
  if (on_rpc.after_next_barrier == nullptr || plan.what != collective::barrier) [[likely]]
    return;
  if (among == team::world()) std::exchange(on_rpc.after_next_barrier, nullptr)();
}

}  // namespace

void do_collective(const collective_plan& plan, collective_values& values, const team& among) {
  const stays_here stays;
  {
    fiber_in_operation open(record_of(among), plan.what);
    collective_steps steps(plan, values, *open);
    while (!steps.advance()) wait_for_missing(*open);
    if (steps.failure() != nullptr) [[unlikely]]
      std::rethrow_exception(steps.failure());
  }
  barrier_is_over(plan, among);
}

// ---- Tasks -------------------------------------------------------------------------------------

/// An operation in which no fiber waits. The fiber that begins it runs its first steps, and a task
/// runs the next ones whenever a contribution comes for which they wait.
struct running_collective : collective_task {
  running_collective(const collective_plan& its_plan, std::unique_ptr<outstanding_collective> its,
                     const team& its_team)
      : collective_task{{&running_collective::run, nullptr}},
        among(its_team),
        plan(its_plan),
        work(std::move(its)),
        open(open_next(record_of(among), plan.what)),
        steps(plan, work->values(), open) {
    open.runs = this;
    open.ticket = ticket_open();
  }

  static void run(task* self);

  team among;
  collective_plan plan;
  std::unique_ptr<outstanding_collective> work;
  open_collective& open;
  collective_steps steps;
  bool advances = false;
  bool is_over = false;
};

namespace {

std::exception_ptr loss_of(int rank, collective what) {
  try {
    throw_rank_lost(rank, place_of(what).c_str());
  } catch (...) {
    return std::current_exception();
  }
}

void advance(running_collective& r) {
  // If an operation on values has suspended, its steps go on by themselves, and then see what has
  // come meanwhile.
  if (std::exchange(r.advances, true)) return;
  const stays_here stays;
  const bool done = r.steps.advance();
  r.advances = false;
  const int lost = done ? no_rank : lost_member(*r.open.among);
  if (!done && lost == no_rank) return;
  const std::exception_ptr failure = done ? r.steps.failure() : loss_of(lost, r.open.what);
  const ticket_id result = r.open.ticket;
  r.is_over = true;
  close_operation(r.open);
  if (failure == nullptr) barrier_is_over(r.plan, r.among);
  r.work->complete(result, failure);
  if (!r.is_posted) delete &r;
}

}  // namespace

void running_collective::run(task* self) {
  auto* r = static_cast<running_collective*>(self);
  r->is_posted = false;
  if (!r->is_over) return advance(*r);
  delete r;
}

ticket_id begin_collective(const collective_plan& plan,
                           std::unique_ptr<outstanding_collective> work, const team& among) {
  auto* r = new running_collective(plan, std::move(work), among);
  const ticket_id result = r->open.ticket;
  advance(*r);
  return result;
}

namespace {

constexpr collective_plan barrier_plan{collective::barrier, collective_shape::meet};

}  // namespace

}  // namespace detail

void barrier(const team& among) { detail::do_with<detail::no_values>(detail::barrier_plan, among); }

future<void> barrier_async(const team& among) {
  return detail::begin_with<detail::no_values>(detail::barrier_plan, among);
}

}  // namespace sojourn
