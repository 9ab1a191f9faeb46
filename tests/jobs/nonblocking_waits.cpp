// SPDX-License-Identifier: Apache-2.0
// A function or method breaks its promise not to wait: in a bundle, where behind it in the run are
// others, which would be called twice if another took over; or alone, where it has no stack of its
// own to wait on. The argument says which, and how.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

struct counter {
  int count = 0;
  int add_later(int n) {
    yield();
    return count += n;
  }
  void add_batch_later(batch<int> numbers) {
    yield();
    for (const int n : numbers) count += n;
  }
  void count_batch_down(batch<int> numbers);
  void send_once(int n);
  void send_once_for_batch(batch<int> numbers);
};

void give_way(int) { yield(); }
long ask(long n) {
  return rpc(next(), [](long m) { return m + 1; }, n).get();
}
long fork_and_ask(long n) {
  auto child = fork(ask, n);
  return child.get();
}
long go(rank_t where) {
  migrate_to(where);
  return rank_me();
}
long go_as_activation(rank_t where) { return activate(go, where); }
long sleep_a_little(long n) {
  sleep_for(std::chrono::milliseconds(n));
  return n;
}

void count_down(int n) {
  if (n > 0) rpc_ff(next(), nonblocking(count_down), n - 1);
}
void counter::count_batch_down(batch<int> numbers) { count_down(numbers[0]); }
void counter::send_once(int n) { rpc_ff(rank_me(), give_way, n); }
void counter::send_once_for_batch(batch<int> numbers) { send_once(numbers[0]); }

void wait_as(std::string_view how) {
  if (how == "bundle") {
    finish([] {
      aggregated here;
      for (int i = 0; i < 10; ++i) {
        rpc_ff(next(), nonblocking([](int n) { give_way(n); }), i);
      }
    });
  } else if (how == "send") {
    rpc_ff(next(), nonblocking(count_down), 3);
    barrier();
  } else if (how == "send_with_view") {
    const std::vector<long> numbers(100, 1);
    rpc_ff(next(), nonblocking([](view<long> v) { count_down(static_cast<int>(v.size())); }),
           view(numbers));
    barrier();
  } else if (how == "send_in_finish") {
    finish([] { rpc_ff(next(), nonblocking(count_down), 3); });
  } else if (how == "send_in_bundle") {
    finish([] {
      aggregated here;
      for (int i = 0; i < 10; ++i) rpc_ff(next(), nonblocking(count_down), 3);
    });
  } else if (how == "ask") {
    rpc(next(), nonblocking([](long n) { return ask(n); }), 1L).get();
  } else if (how == "fork") {
    rpc(next(), nonblocking([](long n) { return fork_and_ask(n); }), 1L).get();
  } else if (how == "sleep") {
    rpc(next(), nonblocking([](long n) { return sleep_a_little(n); }), 1L).get();
  } else if (how == "migrate") {
    rpc(next(), nonblocking([](rank_t to) { return go_as_activation(to); }), rank_me()).get();
  } else if (how == "throw") {
    rpc_ff(next(), nonblocking([](int n) {
             if (n == 1) throw std::domain_error("of one that never waits");
           }),
           1);
    barrier();
  } else if (how == "string") {
    rpc(next(), nonblocking([](std::string text) {
          yield();
          return text;
        }),
        std::string(100, 'x'))
        .get();
  }
}

}  // namespace

template <>
inline constexpr bool sojourn::nonblocking_method<&counter::add_later> = true;
template <>
inline constexpr bool sojourn::nonblocking_method<&counter::send_once> = true;

int main(int argc, char** argv) {
  return run(argc, argv, [&] {
    const std::string_view how = argc > 1 ? argv[1] : "bundle";
    auto there = make<counter>(next());
    if (how == "method") {
      there.call<&counter::add_later>(via::rpc, 1);
    } else if (how == "batch") {
      finish_all([&] {
        for (int i = 0; i < 10; ++i) there.ff<&counter::add_batch_later>(i);
      });
    } else if (how == "batch_alone") {
      finish([&] { there.ff<&counter::add_batch_later>(1); });
    } else if (how == "batch_sends") {
      finish_all([&] {
        for (int i = 0; i < 10; ++i) there.ff<&counter::count_batch_down>(3);
      });
    } else if (how == "batch_sends_once") {
      finish_all([&] {
        for (int i = 0; i < 10; ++i) there.ff<&counter::send_once_for_batch>(3);
      });
    } else if (how == "method_sends_once") {
      finish_all([&] { there.ff<&counter::send_once>(3); });
    } else {
      wait_as(how);
    }
    return 0;
  });
}
