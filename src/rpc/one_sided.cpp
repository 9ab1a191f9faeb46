// SPDX-License-Identifier: Apache-2.0
// Split-phase copies (sojourn/one_sided.hpp) between ranks that share no heap. A read is a request;
// its answer is copied to its place when it comes. Writes are not answered. Instead, wait() asks
// each rank that was written to one question. Messages between two ranks keep their order, so the
// question arrives after all writes, and its answer says that they are done.
#include "sojourn/one_sided.hpp"
#include "sojourn/detail/owner.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/address_map.hpp"
#include "message/dispatcher.hpp"
#include "sojourn/calls/aggregate.hpp"
#include "sojourn/counters.hpp"

namespace sojourn::detail {

struct split_operations {
  /// A read whose bytes only the fiber may put in place, because the place is on a stack, which may
  /// be out of place while the fiber waits.
  struct waiting_read {
    ticket_id ticket;
    void* to;
    std::size_t bytes;
  };

  std::size_t landing = 0;   ///< How many reads are on their way to their places.
  ticket_id all_landed = 0;  ///< Completed when no read is on its way any more.
  std::vector<ticket_id> failed;
  std::vector<waiting_read> reads;
  std::vector<bool> written;  ///< Ranks that were written to.
  std::vector<ticket_id> answers;
  bool has_written = false;
};

namespace {

// Longer ranges are copied before the call returns, by the system if it can.
constexpr std::size_t message_bytes_max = 4096;
// How many reads may be open at a time. It bounds the number of tickets.
constexpr std::size_t reads_max = 16384;

std::vector<split_operations*> unused;

split_operations& begin(split_operations*& in) {
  if (in == nullptr) {
    if (unused.empty()) unused.push_back(new split_operations);
    in = unused.back();
    unused.pop_back();
    in->written.resize(static_cast<std::size_t>(job.count));
  }
  return *in;
}

struct word_of_range {
  std::uint64_t address;
  std::uint64_t bytes;
};

void landed(void* context) {
  auto* all = static_cast<split_operations*>(context);
  if (--all->landing != 0 || all->all_landed == 0) return;
  complete_ticket(find_ticket(all->all_landed), nullptr, 0);
}

void failed_to_land(void* context, ticket_id id) {
  static_cast<split_operations*>(context)->failed.push_back(id);
  landed(context);
}

/// Asks for bytes. A question for no bytes is asked only for its answer.
ticket_id ask(rank_t owner, std::uint64_t address, std::size_t bytes) {
  const word_of_range asked{address, bytes};
  std::byte* at = reserve_request(owner, sizeof asked);
  std::memcpy(at, &asked, sizeof asked);
  const ticket_id ticket = open_answer(owner);
  ++counts.bulk_messages;
  commit_message(owner, message_class::request, runtime_message::bulk_get, 0, ticket);
  return ticket;
}

void take_reads(split_operations& all) {
  if (all.landing != 0) {
    const ticket_id mine = all.all_landed = ticket_open();
    ticket_take(mine, nullptr, 0);
    all.all_landed = 0;
  }
  // Takes all reads, even if one fails.
  std::exception_ptr failure;
  for (const split_operations::waiting_read& read : all.reads) {
    try {
      ticket_take(read.ticket, read.to, read.bytes);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  for (const ticket_id id : all.failed) {
    try {
      ticket_take(id, nullptr, 0);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  all.reads.clear();
  all.failed.clear();
  if (failure != nullptr) std::rethrow_exception(failure);
}

/// Returns when all writes that were sent have been done.
void wait_for_writes(split_operations& all) {
  if (!std::exchange(all.has_written, false)) return;
  all.answers.clear();
  for (rank_t r = 0; r < job.count; ++r) {
    if (!all.written[static_cast<std::size_t>(r)]) continue;
    all.written[static_cast<std::size_t>(r)] = false;
    all.answers.push_back(ask(r, heap_of(r), 0));
  }
  for (const ticket_id answer : all.answers) ticket_take(answer, nullptr, 0);
}

}  // namespace

void split_get(split_operations*& in, std::uint64_t from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  const rank_t owner = owner_of_bytes(from, bytes);
  if (bytes > message_bytes_max || in_reach(from, bytes)) return bulk_get(from, to, bytes);
  split_operations& all = begin(in);
  if (all.landing + all.reads.size() >= reads_max) take_reads(all);
  counts.bulk_bytes += bytes;
  const ticket_id ticket = ask(owner, from, bytes);
  // Only a fiber can put bytes on its stack, and only a fiber can wait for a page of shared memory.
  const auto place = reinterpret_cast<std::uint64_t>(to);
  if (addresses.in_stacks(place) || addresses.in_shared(place)) {
    counts.bulk_copies += 3 * bytes;  // into the message, into the ticket, into place
    all.reads.push_back({ticket, to, bytes});
    return;
  }
  counts.bulk_copies += 2 * bytes;
  ++all.landing;
  land_result(
      find_ticket(ticket),
      {.into = to, .bytes = bytes, .landed = landed, .failed = failed_to_land, .context = &all});
}

void split_put(split_operations*& in, const void* from, std::uint64_t to, std::size_t bytes) {
  if (bytes == 0) return;
  const rank_t owner = owner_of_bytes(to, bytes);
  if (bytes > message_bytes_max || in_reach(to, bytes)) return bulk_put(from, to, bytes);
  split_call(in, owner);
  counts.bulk_bytes += bytes;
  counts.bulk_copies += 2 * bytes;
  if (open_run_count != 0 && bytes == sizeof(std::uint64_t)) {
    std::uint64_t value;
    std::memcpy(&value, from, sizeof value);
    // Alone or in a bundle, the write goes the same way as the question that wait() asks.
    const nonblocking write([](std::uint64_t address, std::uint64_t v) {
      // By memcpy, because the program's bytes need not be aligned.
      std::memcpy(object_here(reinterpret_cast<std::byte*>(address)), &v, sizeof v);
    });
    using call =
        bundled_call<std::remove_const_t<decltype(write)>, void, std::uint64_t, std::uint64_t>;
    if (call::add(owner, write, to, value)) return;
  }
  const word_of_range wanted{to, bytes};
  std::byte* at = reserve_request(owner, sizeof wanted + bytes);
  std::memcpy(at, &wanted, sizeof wanted);
  std::memcpy(at + sizeof wanted, from, bytes);
  ++counts.bulk_messages;
  commit_message(owner, message_class::request, runtime_message::bulk_put, 0, 0);
}

void split_call(split_operations*& in, rank_t rank) {
  split_operations& all = begin(in);
  all.written[static_cast<std::size_t>(rank)] = true;
  all.has_written = true;
}

void split_wait(split_operations* in) {
  wait_for_writes(*in);
  take_reads(*in);
}

void split_end(split_operations* in) noexcept {
  // Errors are dropped, because only wait() reports them. The second step is made even after an
  // error in the first, because reads are still on their way to places here.
  for (const auto step : {wait_for_writes, take_reads}) {
    try {
      step(*in);
    } catch (...) {
    }
  }
  unused.push_back(in);
}

}  // namespace sojourn::detail
