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
//                      given away
//   memcpy B           copies as many bytes from one buffer to another, on rank 0
//   rate B             one-way calls with B bytes: nanoseconds each, until all have run;
//   rate_aggregated B:
//                      the same in bundles
//   switch N           N fibers yield in turn: nanoseconds a switch
//   served N           calls from rank 1 to rank 0, where N fibers yield: nanoseconds a call, and
//                      switches of rank 0 a call
//   create             starting a fiber for a handler that blocks; sync: one lock or unlock
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

#include "common/request_reply.hpp"
#include "common/switches.hpp"
#include "common/two_ranks.hpp"

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

struct named_call {
  std::string_view name;
  void (*call)();
  bool switches;  ///< Another fiber is ready when the caller waits.
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
    named_call{"put", put_numbers, false},
    named_call{"get", get_numbers, false},
    named_call{"write_array", write_array, false},
    named_call{"read_array", read_array, false},
    named_call{"write_vector", write_vector, false},
    named_call{"write_view", write_view, false},
    named_call{"read_vector", read_vector, false},
    named_call{"block", call_with_block, false},
    named_call{"bytes", call_with_bytes, false},
    named_call{"view", call_with_view, false},
    named_call{"echo", exchange_block, false},
    named_call{"echo_function", exchange_by_function, false},
    named_call{"echo_by_name", exchange_named, false},
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
  return bench::time_batches(plan,
                             [&](std::uint64_t count) { Message::exchange(count, there, back); });
}

/// A large buffer of this rank's user.
std::vector<std::byte>& large() {
  static std::vector<std::byte> bytes;
  return bytes;
}

template <class Call>
std::vector<double> time_calls(const bench::batch_plan& plan, Call call) {
  large().assign(plan.bytes, std::byte{1});
  return bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) call();
  });
}

void call_with_large_view() {
  rpc(
      1,
      [](view<std::byte> v) {
        large().resize(v.size());
        std::memcpy(large().data(), v.data(), v.size());
        bench::touch(large().data());
      },
      view<std::byte>(large()))
      .get();
}
void call_with_large_vector() {
  rpc(1, [](const std::vector<std::byte>& v) { bench::touch(v.data()); }, large()).get();
}

void exchange_large_vector() {
  large() = rpc(1, [](std::vector<std::byte> v) { return v; }, std::move(large())).get();
}
std::vector<double> one_way(std::vector<double> round_trips) {
  for (double& nanoseconds : round_trips) nanoseconds /= 2;
  return round_trips;
}

std::vector<double> copy_in_one_process(const bench::batch_plan& plan) {
  std::vector<std::byte> to(plan.bytes);
  return time_calls(plan, [&] {
    bench::touch(large().data());
    std::memcpy(to.data(), large().data(), plan.bytes);
    bench::touch(to.data());
  });
}

std::uint64_t calls_run;  // on rank 1, of those one way

template <std::size_t Bytes>
std::vector<double> time_rate(const bench::batch_plan& plan, bool bundled) {
  using payload = std::array<std::byte, Bytes>;
  return bench::time_batches(plan, [bundled](std::uint64_t count) {
    std::optional<aggregated> bundles;
    if (bundled) bundles.emplace();
    payload argument{};
    for (std::uint64_t i = 0; i < count; ++i) {
      bench::touch(&argument);
      rpc_ff(
          1,
          [](const payload& p) {
            bench::touch(&p);
            ++calls_run;
          },
          argument);
    }
    // Calls from one rank run in their order: all have run when this one does.
    if (rpc(1, [] { return std::exchange(calls_run, 0); }).get() != count)
      throw std::runtime_error("one-way calls were lost");
  });
}

bool yielding;

void yield_until_told() {
  while (yielding) yield();
}

/// Starts `count` fibers that yield, does `work`, and ends them.
template <class Work>
auto among_yielding_fibers(std::uint64_t count, Work work) {
  yielding = true;
  std::vector<thread> others;
  for (std::uint64_t i = 0; i < count; ++i) others.push_back(spawn(yield_until_told));
  auto result = work();
  yielding = false;
  for (thread& t : others) t.join();
  return result;
}

std::vector<double> time_switches_among(const bench::batch_plan& plan) {
  const std::uint64_t fibers = std::max<std::uint64_t>(plan.bytes, 1);
  auto a_turn = among_yielding_fibers(fibers - 1, [&] { return bench::time_switches(plan); });
  for (double& nanoseconds : a_turn) nanoseconds /= static_cast<double>(fibers);
  return a_turn;
}

/// On rank 1: the median of a few batches of calls to rank 0.
double time_calls_back(bench::batch_plan plan) {
  auto each = bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) rpc(0, [] {}).get();
  });
  std::sort(each.begin(), each.end());
  return each[each.size() / 2];
}

/// `plan.bytes` fibers yield on rank 0, this one among them; without any it waits.
std::vector<double> time_served(const bench::batch_plan& plan) {
  const auto calls_made = static_cast<double>(plan.warm_up() + plan.iterations * plan.repeats);
  const auto serve = [&] {
    const std::uint64_t before = counters_now().switches;
    auto done = rpc(1, time_calls_back, plan);
    while (plan.bytes != 0 && !done.ready()) yield();
    const double nanoseconds = done.get();
    return std::vector<double>{nanoseconds,
                               static_cast<double>(counters_now().switches - before) / calls_made};
  };
  return among_yielding_fibers(std::max<std::uint64_t>(plan.bytes, 1) - 1, serve);
}

/// Calls of this rank to itself: one that blocks, less one that does not, less a switch.
std::vector<double> time_creation(const bench::batch_plan& plan) {
  const auto median_of = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  const double blocking = median_of(bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) rpc(0, [] { yield(); }).get();
  }));
  const double plain = median_of(bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) rpc(0, [] {}).get();
  }));
  return {std::max(0.0, blocking - plain - median_of(bench::time_switches(plan)))};
}

std::vector<double> time_locks(const bench::batch_plan& plan) {
  static mutex one;
  auto both = bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      one.lock();
      bench::touch(&one);
      one.unlock();
    }
  });
  for (double& nanoseconds : both) nanoseconds /= 2;
  return both;
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
  if (const named_call* call = find_call(operation))
    return bench::time_batches(plan, [call](std::uint64_t count) { repeat(*call, count); });
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
  if (operation == "rpc_view") return time_calls(plan, call_with_large_view);
  if (operation == "rpc_vector") return time_calls(plan, call_with_large_vector);
  if (operation == "rpc_moved") return one_way(time_calls(plan, exchange_large_vector));
  if (operation == "memcpy") return copy_in_one_process(plan);
  if (operation == "rate" && plan.bytes == 8) return time_rate<8>(plan, false);
  if (operation == "rate" && plan.bytes == 64) return time_rate<64>(plan, false);
  if (operation == "rate_aggregated" && plan.bytes == 8) return time_rate<8>(plan, true);
  if (operation == "switch") return time_switches_among(plan);
  if (operation == "served") return time_served(plan);
  if (operation == "create") return time_creation(plan);
  if (operation == "sync") return time_locks(plan);
  if (operation == "clock") return bench::ticks_a_nanosecond();
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  exports<nothing_by_name>(&target::nothing);
  exports<exchange_by_name>(&target::exchange_block);
  return bench::run_two_ranks("bench_rpc", argc, argv, measure);
}
