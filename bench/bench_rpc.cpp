// SPDX-License-Identifier: Apache-2.0
//
// Remote calls, one batch at a time as the driver commands. Figures are nanoseconds of a round
// trip from rank 0 to an object or a function of rank 1, unless said otherwise.
//
//   OPERATION          one of the calls of the table `calls` below
//   count.OPERATION    what a call costs in counters: switches, fibers made, messages, bytes of
//                      messages, bytes copied by marshalling; all on both ranks
//   am B               a request of B bytes and a reply of B bytes without a future; am_there B
//                      and am_back B: only one of them has more than 8
//   am_ticket B        the same as `am`, with a ticket that the caller waits for
//   rpc_view B, rpc_vector B     a call with B bytes: copied from where they arrive, as a vector
//                      that the caller keeps; rpc_moved B: half of there and back of one that is
//                      given away; view_stream B: one-way calls, until all have run
//   memcpy B           copies as many bytes from one buffer to another, on rank 0
//   rate B             one-way calls with B bytes, 8 or 64: nanoseconds each, until all have run
//   bundled B          one-way calls with 8 bytes, in bundles of B bytes
//   window_put B, …    as peer_mpi_window has them, on rank 1's heap: window_get, window_fetch_add,
//                      window_put_signal
//   switch N           N fibers yield in turn: nanoseconds a switch
//   served N           calls from rank 1 to rank 0, where N fibers yield: nanoseconds a call, and
//                      switches of rank 0 a call
//   create             starting a fiber for a handler that blocks; sync: one lock or unlock
//
// What calls deliver is checked: after a batch the receiver has the sender's bytes, and numbers of
// one-way calls add up.
//
// Commands arrive at rank 0, which sleeps in read() between them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/payload.hpp"
#include "common/request_reply.hpp"
#include "common/switches.hpp"
#include "common/two_ranks.hpp"
#include "rpc_parts.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t doubles = 20;  // of the paper's bulk transfers
constexpr std::size_t word_bytes = 64;
using words = std::array<double, doubles>;
using block = std::array<std::byte, word_bytes>;

/// The buffers of this rank's user.
block sent;
block received;
words numbers_sent;
words numbers_received;

template <class T>
void deliver(T& buffer, const T& arrived) {
  buffer = arrived;
  bench::touch(&buffer);
}

/// What the calls are made to; it lies in rank 1's heap.
struct target {
  double value = 1;
  words numbers{};

  std::pair<global_ptr<double>, global_ptr<double>> places() {
    return {global_ptr<double>(&value), global_ptr<double>(numbers.data())};
  }

  void nothing() {}
  void one_word(std::int32_t a) { bench::touch(&a); }
  void two_words(std::int32_t a, std::int32_t b) {
    bench::touch(&a);
    bench::touch(&b);
  }
  /// Blocks once: it becomes a thread then.
  void threaded() { yield(); }
  double read() const { return value; }
  void write(double v) { value = v; }
  words read_numbers() const { return numbers; }
  void write_numbers(const words& v) { deliver(numbers, v); }
  std::vector<double> read_vector() const { return {numbers.begin(), numbers.end()}; }
  void write_vector(const std::vector<double>& v) { copy_in(v); }
  void write_view(view<double> v) { copy_in(v); }
  void take_block(const block& b) { deliver(received, b); }
  void take_bytes(const std::vector<std::byte>& b) {
    std::copy_n(b.begin(), std::min(b.size(), word_bytes), received.begin());
  }
  block exchange_block(const block& b) {
    deliver(received, b);
    return sent;
  }

 private:
  template <class Range>
  void copy_in(const Range& v) {
    std::copy_n(v.begin(), std::min(v.size(), doubles), numbers.begin());
    bench::touch(&numbers);
  }
};

/// Its methods run one at a time.
struct guarded : monitor {
  void threaded() { yield(); }
  void nothing() {}
};

using nothing_by_name = method<"bench.target.nothing", void (target::*)()>;
using exchange_by_name = method<"bench.target.exchange", block (target::*)(const block&)>;

global_ptr<target> object;
global_ptr<guarded> guarded_object;
global_ptr<double> value_there;
global_ptr<double> numbers_there;

// ---- Calls, each a round trip ------------------------------------------------------------------

void call_nothing() { object.call<&target::nothing>(); }
void call_function() {
  rpc(1, [] {}).get();
}
void call_by_name() { object.call<nothing_by_name>(); }
void call_one_word() { object.call<&target::one_word>(1); }
void call_two_words() { object.call<&target::two_words>(1, 2); }
void call_threaded() { object.call<&target::threaded>(); }
void call_atomic() { guarded_object.call<&guarded::threaded>(); }
void call_atomic_simple() { guarded_object.call<&guarded::nothing>(); }

void load_double() { numbers_received[0] = load(value_there); }
void store_double() { store(value_there, numbers_sent[0]); }
void read_double() { numbers_received[0] = object.call<&target::read>(); }
void write_double() { object.call<&target::write>(numbers_sent[0]); }

void put_numbers() { put(std::span<const double>(numbers_sent), numbers_there); }
void get_numbers() { get(numbers_there, std::span<double>(numbers_received)); }
void write_array() { object.call<&target::write_numbers>(numbers_sent); }
void read_array() { deliver(numbers_received, object.call<&target::read_numbers>()); }
void write_vector() {
  object.call<&target::write_vector>(std::vector<double>(numbers_sent.begin(), numbers_sent.end()));
}
void write_view() { object.call<&target::write_view>(view<double>(numbers_sent)); }
void read_vector() {
  const std::vector<double> arrived = object.call<&target::read_vector>();
  std::copy_n(arrived.begin(), std::min(arrived.size(), doubles), numbers_received.begin());
}

void call_with_block() { object.call<&target::take_block>(sent); }
void call_with_bytes() {
  object.call<&target::take_bytes>(std::vector<std::byte>(sent.begin(), sent.end()));
}
void call_with_view() {
  rpc(
      1,
      [](view<std::byte> v) {
        std::copy_n(v.begin(), std::min(v.size(), word_bytes), received.begin());
      },
      view<std::byte>(sent))
      .get();
}
void exchange_block() { deliver(received, object.call<&target::exchange_block>(sent)); }
void exchange_named() { deliver(received, object.call<exchange_by_name>(sent)); }
void exchange_by_function() {
  deliver(received, rpc(
                        1,
                        [](const block& argument) {
                          deliver(received, argument);
                          return sent;
                        },
                        sent)
                        .get());
}

/// A fiber of rank 0 that is ready when the caller waits: the caller leaves its stack, and the
/// reply comes through the dispatcher.
semaphore* other_turn;
bool other_ends;

void take_turns() {
  for (;;) {
    other_turn->acquire();
    if (other_ends) return;
  }
}

template <class Call>
void beside_another_fiber(std::uint64_t count, Call call) {
  semaphore turn(0);
  other_turn = &turn;
  other_ends = false;
  thread other = spawn(take_turns);
  for (std::uint64_t i = 0; i < count; ++i) {
    turn.release();
    call();
  }
  other_ends = true;
  turn.release();
  other.join();
}

/// Which of the buffers of a rank's user a call fills with what the other rank's user sends: there,
/// here, or the object's numbers.
enum class delivers : std::uint8_t { nothing, there, both_ways, to_object, from_object };

struct named_call {
  std::string_view name;
  void (*call)();
  bool switches;  ///< Another fiber is ready when the caller waits.
  delivers what = delivers::nothing;
};
constexpr std::array calls{
    named_call{"simple", call_nothing, false},
    named_call{"function", call_function, false},
    named_call{"by_name", call_by_name, false},
    named_call{"simple_one_word", call_one_word, false},
    named_call{"simple_two_words", call_two_words, false},
    named_call{"simple_threaded", call_threaded, false},
    named_call{"simple_atomic", call_atomic_simple, false},
    named_call{"null", call_nothing, true},
    named_call{"one_word", call_one_word, true},
    named_call{"two_words", call_two_words, true},
    named_call{"threaded", call_threaded, true},
    named_call{"atomic", call_atomic, true},
    named_call{"load", load_double, false},
    named_call{"store", store_double, false},
    named_call{"read", read_double, false},
    named_call{"write", write_double, false},
    named_call{"put", put_numbers, false, delivers::to_object},
    named_call{"get", get_numbers, false, delivers::from_object},
    named_call{"write_array", write_array, false, delivers::to_object},
    named_call{"read_array", read_array, false, delivers::from_object},
    named_call{"write_vector", write_vector, false, delivers::to_object},
    named_call{"write_view", write_view, false, delivers::to_object},
    named_call{"read_vector", read_vector, false, delivers::from_object},
    named_call{"block", call_with_block, false, delivers::there},
    named_call{"bytes", call_with_bytes, false, delivers::there},
    named_call{"view", call_with_view, false, delivers::there},
    named_call{"echo", exchange_block, false, delivers::both_ways},
    named_call{"echo_function", exchange_by_function, false, delivers::both_ways},
    named_call{"echo_by_name", exchange_named, false, delivers::both_ways},
};

const named_call* find_call(std::string_view name) {
  const auto* found =
      std::find_if(calls.begin(), calls.end(), [&](const named_call& c) { return c.name == name; });
  return found == calls.end() ? nullptr : found;
}

void repeat(const named_call& which, std::uint64_t count) {
  bench::touch(&sent);
  bench::touch(&numbers_sent);
  if (which.switches) return beside_another_fiber(count, which.call);
  for (std::uint64_t i = 0; i < count; ++i) which.call();
}

// ---- What arrives ------------------------------------------------------------------------------

void fill_buffers() {
  bench::fill_payload(sent.data(), sent.size(), rank_me());
  received = {};
  for (std::size_t i = 0; i < doubles; ++i) {
    numbers_sent[i] = static_cast<double>(i) + 100.0 * (rank_me() + 1);
  }
  numbers_received = {};
}
bool has_block(rank_t from) {
  block wanted;
  bench::fill_payload(wanted.data(), wanted.size(), from);
  return received == wanted;
}
bool has_numbers(const words& numbers, rank_t from) {
  for (std::size_t i = 0; i < doubles; ++i) {
    if (numbers[i] != static_cast<double>(i) + 100.0 * (from + 1)) return false;
  }
  return true;
}

void prepare(delivers what) {
  fill_buffers();
  rpc(1, fill_buffers).get();
  if (what == delivers::from_object) {
    object.call<&target::write_numbers>(rpc(1, [] { return numbers_sent; }).get());
  }
  if (what == delivers::to_object) object.call<&target::write_numbers>(words{});
}
bool has_arrived(delivers what) {
  const auto there = [] { return rpc(1, [] { return has_block(0); }).get(); };
  switch (what) {
    case delivers::nothing:
      return true;
    case delivers::there:
      return there();
    case delivers::both_ways:
      return there() && has_block(1);
    case delivers::to_object:
      return has_numbers(object.call<&target::read_numbers>(), 0);
    case delivers::from_object:
      return has_numbers(numbers_received, 1);
  }
  return false;
}

std::vector<double> time_call(const named_call& which, const bench::batch_plan& plan) {
  prepare(which.what);
  auto found = bench::time_batches(plan, [&](std::uint64_t count) { repeat(which, count); });
  bench::require(has_arrived(which.what), which.name);
  return found;
}

counters counted_on_both() {
  return counters_now() + rpc(1, [] { return counters_now(); }).get();
}

std::vector<double> count_call(const named_call& which, std::uint64_t count) {
  repeat(which, 10);
  const auto counted = [&](std::uint64_t n) {
    const counters before = counted_on_both();
    repeat(which, n);
    return counted_on_both() - before;
  };
  // What beginning and end cost cancels out.
  const counters once = counted(count);
  const counters made = counted(2 * count) - once;
  const auto each = [&](std::uint64_t of) {
    return static_cast<double>(static_cast<std::int64_t>(of)) / static_cast<double>(count);
  };
  return {each(made.switches),       each(made.fibers_made),  each(made.requests_sent),
          each(made.request_bytes),  each(made.replies_sent), each(made.reply_bytes),
          each(made.marshal_copies), each(made.bulk_messages)};
}

// ---- What stands beside them -------------------------------------------------------------------

template <class Message>
std::vector<double> time_messages(const bench::batch_plan& plan, std::size_t there,
                                  std::size_t back) {
  const auto fill = [] {
    bench::fill_payload(bench::table.out.data(), bench::table.out.size(), rank_me());
    bench::table.in = {};
  };
  fill();
  rpc(1, fill).get();
  auto found = bench::time_batches(
      plan, [&](std::uint64_t count) { Message::exchange(count, there, back); });
  const bool here = bench::is_payload(bench::table.in.data(), back, 1);
  const bool other =
      rpc(
          1, [](std::size_t bytes) { return bench::is_payload(bench::table.in.data(), bytes, 0); },
          there)
          .get();
  bench::require(here && other, "an active message");
  return found;
}

/// A large buffer of this rank's user.
std::vector<std::byte>& large() {
  static std::vector<std::byte> bytes;
  return bytes;
}
/// Of how many calls it was filled by another rank.
std::uint64_t large_arrived;

/// The buffers of both ranks' users; a call's number stands in front of its bytes.
void prepare_large(std::size_t bytes) {
  const auto make = [](std::size_t count, rank_t from) {
    large().resize(count);
    large().shrink_to_fit();
    from >= 0 ? bench::fill_payload(large().data(), count, from)
              : static_cast<void>(std::fill(large().begin(), large().end(), std::byte{0}));
    large_arrived = 0;
  };
  make(bytes, 0);
  rpc(1, make, bytes, rank_t{-1}).get();
}
bool has_large(std::size_t bytes, std::uint64_t number) {
  return large().size() == bytes && bench::has_number(large().data(), bytes, number) &&
         bench::is_payload(large().data(), bytes, 0);
}

/// `call` is told its number, which it writes in front of what it sends.
template <class Call>
std::vector<double> time_large(std::string_view name, const bench::batch_plan& plan, Call call) {
  prepare_large(plan.bytes);
  std::uint64_t number = 0;
  auto found = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) call(number++);
  });
  // Behind all one-way calls.
  auto last = rpc(
      1,
      [](std::size_t bytes, std::uint64_t n) {
        return large_arrived == n + 1 && has_large(bytes, n);
      },
      plan.bytes, number - 1);
  bench::require(last.get(), name);
  return found;
}

void number_large(std::uint64_t number) {
  bench::number_payload(large().data(), large().size(), number);
  bench::touch(large().data());
}
void take_view(view<std::byte> v) {
  if (!v.empty()) std::memcpy(large().data(), v.data(), std::min(v.size(), large().size()));
  bench::touch(large().data());
  ++large_arrived;
}

void call_with_large_view(std::uint64_t number) {
  number_large(number);
  rpc(1, take_view, view<std::byte>(large())).get();
}
/// Keeps what it is given in place of the buffer: delivered without another copy.
void call_with_large_vector(std::uint64_t number) {
  number_large(number);
  rpc(
      1,
      [](std::vector<std::byte> v) {
        large() = std::move(v);
        bench::touch(large().data());
        ++large_arrived;
      },
      large())
      .get();
}

/// Half of there and back of a vector that is given away, both times.
std::vector<double> time_moved(const bench::batch_plan& plan) {
  prepare_large(plan.bytes);
  std::uint64_t number = 0;
  auto both = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      number_large(number++);
      large() = rpc(1, [](std::vector<std::byte> v) { return v; }, std::move(large())).get();
    }
  });
  bench::require(has_large(plan.bytes, number - 1), "rpc_moved");
  for (double& nanoseconds : both) nanoseconds /= 2;
  return both;
}

/// One-way calls with a view; a batch ends when all have run.
std::vector<double> time_view_stream(const bench::batch_plan& plan) {
  prepare_large(plan.bytes);
  std::uint64_t number = 0;
  auto found = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      number_large(number++);
      rpc_ff(1, take_view, view<std::byte>(large()));
    }
    // A call with long arguments begins once they have been read: later calls may overtake it.
    while (rpc(1, [] { return large_arrived; }).get() != number) continue;
  });
  bench::require(rpc(1, has_large, plan.bytes, number - 1).get(), "view_stream");
  return found;
}

std::vector<double> copy_in_one_process(const bench::batch_plan& plan) {
  large().resize(plan.bytes);
  std::vector<std::byte> to(plan.bytes);
  return bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      bench::touch(large().data());
      std::memcpy(to.data(), large().data(), plan.bytes);
      bench::touch(to.data());
    }
  });
}

// Of one-way calls on rank 1: how many have run, and the sum of their numbers.
std::uint64_t calls_run;
std::uint64_t numbers_run;

template <std::size_t Words>
std::vector<double> time_rate(const bench::batch_plan& plan,
                              const std::optional<aggregation>& bundle) {
  using payload = std::array<std::uint64_t, Words>;
  return bench::time_batches(plan, [&bundle](std::uint64_t count) {
    std::optional<aggregated> bundles;
    if (bundle) bundles.emplace(*bundle);
    payload argument{};
    for (std::uint64_t i = 0; i < count; ++i) {
      argument.back() = i;
      rpc_ff(
          1,
          [](const payload& p) {
            bench::touch(&p);
            ++calls_run;
            numbers_run += p.back();
          },
          argument);
    }
    // Calls from one rank run in their order: all have run when this one does.
    const auto [run, sum] =
        rpc(1, [] {
          return std::pair(std::exchange(calls_run, 0), std::exchange(numbers_run, 0));
        }).get();
    if (run != count) throw std::runtime_error("one-way calls were lost");
    bench::require(sum == count * (count - 1) / 2, "rate");
  });
}

void make_target() {
  object = make<target>(1);
  guarded_object = make<guarded>(1);
  const auto places = object.call<&target::places>();
  value_there = places.first;
  numbers_there = places.second;
}

bench::figures measure(const bench::command& next) {
  if (!object) make_target();
  const bench::batch_plan& plan = next.plan;
  const std::string_view operation = next.operation;
  if (const named_call* call = find_call(operation)) return time_call(*call, plan);
  constexpr std::string_view counting = "count.";
  if (operation.starts_with(counting)) {
    const named_call* call = find_call(operation.substr(counting.size()));
    if (call != nullptr) return count_call(*call, plan.iterations);
  }
  if (operation.starts_with("am") && plan.bytes >= 8 && plan.bytes <= bench::table.out.size()) {
    if (operation == "am") return time_messages<bench::request_reply>(plan, plan.bytes, plan.bytes);
    if (operation == "am_there") return time_messages<bench::request_reply>(plan, plan.bytes, 8);
    if (operation == "am_back") return time_messages<bench::request_reply>(plan, 8, plan.bytes);
    if (operation == "am_ticket")
      return time_messages<bench::request_ticket>(plan, plan.bytes, plan.bytes);
  }
  if (operation == "rpc_view") return time_large(operation, plan, call_with_large_view);
  if (operation == "rpc_vector") return time_large(operation, plan, call_with_large_vector);
  if (operation == "rpc_moved") return time_moved(plan);
  if (operation == "view_stream") return time_view_stream(plan);
  if (operation == "memcpy") return copy_in_one_process(plan);
  if (operation == "rate" && plan.bytes == 8) return time_rate<1>(plan, std::nullopt);
  if (operation == "rate" && plan.bytes == 64) return time_rate<8>(plan, std::nullopt);
  if (operation == "bundled") return time_rate<1>(plan, aggregation{.bytes = plan.bytes});
  if (operation.starts_with("window_")) return bench::time_window(operation, plan);
  if (operation == "switch") return bench::time_switches_among(plan);
  if (operation == "served") return bench::time_served(plan);
  if (operation == "create") return bench::time_creation(plan);
  if (operation == "sync") return bench::time_locks(plan);
  if (operation == "clock") return bench::ticks_a_nanosecond();
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  exports<nothing_by_name>(&target::nothing);
  exports<exchange_by_name>(&target::exchange_block);
  return bench::run_two_ranks("bench_rpc", argc, argv, measure);
}
