// SPDX-License-Identifier: Apache-2.0
// Persistent buffers: once they have been made, calls allocate nothing, at the caller and at the
// callee. Every allocation of the program is counted: the linker leads them here.
#include <array>
#include <cstdlib>
#include <functional>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "check.hpp"

namespace {
std::size_t allocations = 0;
}

extern "C" {
void* __real_malloc(std::size_t);
void* __wrap_malloc(std::size_t bytes) {
  ++allocations;
  return __real_malloc(bytes);
}
void* __real_calloc(std::size_t, std::size_t);
void* __wrap_calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __real_calloc(count, bytes);
}
void* __real_realloc(void*, std::size_t);
void* __wrap_realloc(void* old, std::size_t bytes) {
  ++allocations;
  return __real_realloc(old, bytes);
}
}
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = __real_malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

using kib = std::array<char, 1024>;
using words = std::array<double, 20>;

struct object {
  long n = 0;
  long add(long more) { return n += more; }
  words read() const { return {}; }
  void write(const words&) {}
  long wait(long more) {
    yield();
    return n += more;
  }
};
struct exclusive : object, monitor {};

/// Allocations of all ranks together while each makes many of these calls.
template <class Call>
std::size_t allocated_by(Call call) {
  for (int i = 0; i < 200; ++i) call();
  barrier();
  // Twice, for the other ranks may still have been making their buffers.
  std::size_t found = 0;
  for (int time = 0; time < 2; ++time) {
    barrier();
    const std::size_t before = allocations;
    for (int i = 0; i < 1000; ++i) call();
    barrier();
    found = allocations - before;
  }
  return reduce(found, std::plus<>{});
}

// A barrier keeps what it gets in vectors.
std::size_t of_barriers;
template <class Call>
void allocates_nothing(Call call) {
  const std::size_t found = allocated_by(call);
  CHECK(found <= of_barriers);
}

void calls() {
  of_barriers = allocated_by([] {}) + static_cast<std::size_t>(rank_count()) * 2;
  CHECK(of_barriers < 50u * static_cast<unsigned>(rank_count()));
  auto p = make<object>(next());
  auto x = make<exclusive>(next());
  allocates_nothing([] { rpc(next(), [] {}).get(); });
  allocates_nothing([] { (void)rpc(next(), [](long a, long b) { return a + b; }, 1L, 2L).get(); });
  allocates_nothing([&] { (void)p.call<&object::add>(1L); });
  allocates_nothing([&] { (void)p.async<&object::add>(1L).get(); });
  allocates_nothing([&] { (void)p.call<&object::wait>(1L); });
  allocates_nothing([&] { (void)x.call<&object::add>(1L); });
  destroy(p);
  destroy(x);
}

/// Has results of as many calls here at once: chance would have it some time, and makes the buffers
/// then.
template <class Call>
void make_buffers(Call call) {
  std::array<decltype(call()), 8> all;
  for (auto& f : all) f = call();
  for (auto& f : all) f.wait();
  for (auto& f : all) (void)f.get();
}

void long_arguments_and_results() {
  auto p = make<object>(next());
  make_buffers([&] { return p.async<&object::read>(); });
  allocates_nothing([&] { (void)p.call<&object::read>(); });
  allocates_nothing([&] { p.call<&object::write>(words{}); });
  static kib bytes;
  make_buffers([] { return rpc(next(), [](const kib& in) { return in; }, bytes); });
  allocates_nothing([] { (void)rpc(next(), [](const kib& in) { return in; }, bytes).get(); });
  // Several at a time.
  allocates_nothing([] {
    std::array<future<kib>, 8> all;
    for (auto& f : all) f = rpc(next(), [](const kib& in) { return in; }, bytes);
    for (auto& f : all) (void)f.get();
  });
  destroy(p);
}

void views() {
  static std::array<double, 500> values;
  const auto sum = [](std::span<const double> in) { return in.size(); };
  allocates_nothing([&] { (void)rpc(next(), sum, std::span<const double>(values)).get(); });
  // One that waits keeps them in the buffer of its function.
  const auto waits = [](std::string_view in) {
    yield();
    return in.size();
  };
  allocates_nothing([&] { (void)rpc(next(), waits, std::string_view("some words")).get(); });
}

void one_sided_access() {
  auto there = make_array<long>(next(), 4);
  static std::array<long, 4> here;
  completions all;
  allocates_nothing([&] {
    long on_the_stack = 0;
    for (std::ptrdiff_t i = 0; i < 4; ++i) store(there + i, i + 0L, all);
    all.wait();
    for (std::ptrdiff_t i = 0; i < 4; ++i) load(there + i, here[static_cast<std::size_t>(i)], all);
    load(there + 3, on_the_stack, all);
    all.wait();
    if (on_the_stack != 3) ++allocations;
  });
  destroy_array(there, 4);
}

long done = 0;

void one_way_calls() {
  allocates_nothing([] {
    rpc_ff(next(), [] { ++done; });
    rpc(next(), [] {}).get();
  });
  aggregated here;
  allocates_nothing([] {
    for (int i = 0; i < 10; ++i) rpc_ff(next(), [](long n) { done += n; }, 1L);
    rpc(next(), [] {}).get();
  });
  CHECK(done > 10'000);
}

void children_and_continuations() {
  const auto twice = [](long n) { return 2 * n; };
  allocates_nothing([&] { (void)fork(twice, 1L).get(); });
  std::array<long, 12> here{};  // a longer one
  allocates_nothing([&] { (void)fork([here] { return here[3]; }).get(); });
  allocates_nothing([] { fork(yield).get(); });
  allocates_nothing([&] {
    std::array<future<long>, 8> all;
    for (auto& f : all) f = fork(twice, 2L);
    for (auto& f : all) (void)f.get();
  });
  allocates_nothing([&] { (void)rpc(next(), [] { return 3L; }).then(twice).get(); });
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("calls allocate nothing", calls);
    check::claim("long arguments and results allocate nothing", long_arguments_and_results);
    check::claim("views allocate nothing", views);
    check::claim("one-sided access allocates nothing", one_sided_access);
    check::claim("one-way calls allocate nothing", one_way_calls);
    check::claim("children and continuations allocate nothing", children_and_continuations);
    return check::verdict();
  });
}
