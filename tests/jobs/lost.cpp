// SPDX-License-Identifier: Apache-2.0
// A rank that dies while others wait for it, in the way the argument says. lost.sh reads what the
// others say.
#include <unistd.h>
#include <unwind.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sojourn/sojourn.hpp"

namespace {
// Set in a rank that dies slowly: who is to die meanwhile, of that.
pid_t dies_meanwhile = 0;
}  // namespace

// A rank that dies notes its stack. (--wrap)
extern "C" _Unwind_Reason_Code __real__Unwind_Backtrace(_Unwind_Trace_Fn, void*);
extern "C" _Unwind_Reason_Code __wrap__Unwind_Backtrace(_Unwind_Trace_Fn visit, void* context) {
  if (dies_meanwhile != 0) {
    kill(dies_meanwhile, SIGUSR2);
    usleep(300'000);
  }
  return __real__Unwind_Backtrace(visit, context);
}

namespace {

using namespace sojourn;

constexpr rank_t victim = 1;
team part;  // of the ranks up to the victim, or of the others

void die_later() {
  sleep_for(std::chrono::milliseconds(20));
  std::raise(SIGKILL);
}
void sleep_long() { sleep_for(std::chrono::seconds(30)); }

struct object {
  long n = 0;
  long wait() {
    sleep_long();
    return n;
  }
  long bump() { return ++n; }
  long get() const { return n; }
};
global_ptr<object> of_rank_0;
replicated<object> versions_of_victim;
replicated<object> versions_of_rank_0;

char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.empty() ? '?' : text[text.rfind(')') + 2];
}

/// The launcher stands still for a while: a rank that ends meanwhile has no memory any more, and
/// nobody is told of that.
void stop_launcher() {
  const pid_t launcher = getppid();
  if (fork() == 0) {
    usleep(400'000);
    kill(launcher, SIGCONT);
    _exit(0);
  }
  kill(launcher, SIGSTOP);
}

/// Nothing else happens on this rank until the process is a zombie.
void outlive(pid_t process) {
  while (state_of(process) != 'Z') usleep(1000);
}

bool may_die = false;
pid_t pid_of_one_that_dies() {
  may_die = true;
  return getpid();
}
void outlive_the_victim(pid_t process) {
  stop_launcher();
  outlive(process);
}

constexpr std::size_t long_bytes = 8u << 20;  // more than go whole in their message
std::vector<char> long_values() {
  may_die = true;
  return std::vector<char>(long_bytes);
}
void take(const std::vector<char>& all) { std::printf("%zu bytes came\n", all.size()); }
void visits() {
  std::pmr::vector<char> all(long_bytes, 'x', thread_heap());
  rpc_ff(0, outlive_the_victim, getpid());
  may_die = true;
  migrate_to(0);
  std::printf("%zu bytes came\n", all.size());
}

/// What the victim has sent last is still to be read from its memory when that is gone.
void use_what_is_gone(std::string_view how, global_ptr<object> there) {
  if (how == "thread_gone") return spawn_on(victim, visits).join();
  if (how == "argument_gone") return sleep_long();
  const pid_t process = rpc(victim, [] { return getpid(); }).get();
  future<std::vector<char>> result;
  if (how == "result_gone") result = rpc(victim, long_values);
  if (how != "result_gone") rpc(victim, pid_of_one_that_dies).get();
  outlive_the_victim(process);
  std::vector<char> all(1u << 20);
  const auto bytes = global_ptr<char>::at(there.address());
  if (how == "get_gone") get(bytes, std::span<char>(all));
  if (how == "put_gone") put(std::span<const char>(all), bytes);
  if (how == "result_gone") (void)result.get();
}
void end_before_it_is_used(std::string_view how) {
  if (how == "argument_gone") {
    rpc_ff(0, outlive_the_victim, getpid());
    rpc_ff(0, take, long_values());
  }
  while (!may_die || state_of(getppid()) != 'T') yield();
  std::raise(SIGKILL);
}

[[gnu::noinline]] void die_slowly() {
  dies_meanwhile = rpc(0, [] { return getpid(); }).get();
  *static_cast<volatile int*>(nullptr) = 0;
}

void wait(std::string_view how, global_ptr<object> there) {
  if (how.ends_with("_gone")) use_what_is_gone(how, there);
  if (how == "call") rpc(victim, sleep_long).get();
  if (how == "method") there.call<&object::wait>();
  if (how == "future") {
    std::vector<future<void>> all;
    for (int i = 0; i < 100; ++i) all.push_back(rpc(victim, sleep_long));
    for (auto& f : all) f.get();
  }
  if (how == "first") {
    // Later than the victim's end, and soon enough that this rank ends in time.
    auto here = rpc(rank_me(), [] { sleep_for(std::chrono::milliseconds(700)); });
    auto there_too = rpc(victim, sleep_long);
    auto [index, both] = when_any(std::move(here), std::move(there_too)).get();
    if (index == 1) std::get<1>(both).get();
  }
  if (how == "in_time") {
    auto f = rpc(victim, sleep_long);
    if (f.wait_for(std::chrono::seconds(10))) f.get();
  }
  if (how == "polls") {
    // This rank always has something to do.
    auto f = rpc(victim, sleep_long);
    while (!f.ready()) yield();
    f.get();
  }
  if (how == "copies") {
    // Some have a copy when the owner dies, others wait for one or change the object.
    for (long seen = 0;;) {
      seen = there.call<&object::bump>();
      if (there.call<&object::get>(via::cache) < seen) std::printf("an old copy\n");
    }
  }
  if (how == "copy_holder") {
    // The victim has a copy, which it cannot give up when it is dead.
    for (long i = 0; i < 200; ++i) {
      const long seen = of_rank_0.call<&object::bump>();
      if (of_rank_0.call<&object::get>(via::cache) < seen) std::printf("an old copy\n");
      if (i % 2 == 0) sleep_for(std::chrono::milliseconds(1));
    }
    rpc(victim, [] {}).get();
  }
  if (how == "fetched") {
    // An object goes round among ranks, and the victim is one of them, or its home.
    for (const auto object_of : {of_rank_0, there}) {
      try {
        for (long i = 0; i < 2000; ++i) {
          const long seen = object_of.call<&object::bump>(i % 3 == 0 ? via::rpc : via::fetch);
          if (object_of.call<&object::get>(via::cache) < seen) std::printf("an old object\n");
          if (i % 50 == 0) sleep_for(std::chrono::milliseconds(1));
        }
      } catch (const rank_lost& e) {
        if (e.rank() != victim) throw;
      }
    }
    rpc(victim, [] {}).get();
  }
  if (how == "object_holder") {
    // The victim has the object when it dies.
    for (;;) {
      of_rank_0.call<&object::bump>(via::rpc);
      yield();  // a loop of local calls would keep the object at home
    }
  }
  if (how == "replicated") {
    // Some have a version when the writer dies, others wait for one or update the object.
    const replicated<object> late = rpc(victim, [] { return make_replicated<object>(); }).get();
    (void)versions_of_victim.read<&object::get>();
    try {
      for (long i = 0;; ++i) {
        const long seen = versions_of_victim.update<&object::bump>(versions{0});
        if (versions_of_victim.read<&object::get>() < seen) std::printf("an old version\n");
        if (i % 3 == 0) versions_of_victim.refresh();
        if (i % 7 == 0) yield();
      }
    } catch (const rank_lost&) {
      // What is here is read as before.
      if (versions_of_victim.read<&object::get>() < 1) std::printf("an old version\n");
    }
    (void)late.read<&object::get>();
  }
  if (how == "subscribes") {
    // The writer, which hears nobody, dies while calls wait for a version.
    future<long> reads = fork([] { return versions_of_victim.read<&object::get>(); });
    future<void> refreshes = fork([] { versions_of_victim.refresh(); });
    try {
      (void)reads.get();
    } catch (const rank_lost&) {
      refreshes.get();
    }
  }
  if (how == "subscriber") {
    // The victim never answers the last push.
    for (long i = 0; i < 200; ++i) {
      const long seen = versions_of_rank_0.update<&object::bump>(versions{0});
      if (versions_of_rank_0.read<&object::get>() < seen) std::printf("an old version\n");
      if (i % 2 == 0) sleep_for(std::chrono::milliseconds(1));
    }
    rpc(victim, [] {}).get();
  }
  if (how == "dist_object") {
    // The victim has none yet, so what asks for it waits there.
    const dist_object<int> here(dist_name{"of others"}, 1);
    (void)here.fetch(victim).get();
  }
  if (how == "thread") spawn_on(victim, sleep_long).join();
  if (how == "finish") {
    finish([] { rpc_ff(victim, sleep_long); });
  }
  if (how == "finish_window") {
    // The body waits for the end of the first call.
    finish({.in_flight = 1}, [] {
      for (;;) rpc_ff(victim, sleep_long);
    });
  }
  if (how == "finish_after" || how == "finish_window_after") {
    // Calls that cannot be sent do not keep a finish open.
    auto calls = [] {
      for (int i = 0; i < 3; ++i) {
        try {
          rpc_ff(victim, sleep_long);
        } catch (const rank_lost&) {
        }
      }
    };
    try {
      rpc(victim, sleep_long).get();
    } catch (const rank_lost&) {
      how == "finish_after" ? finish(calls) : finish({.in_flight = 1}, calls);
      throw;
    }
  }
  if (how == "finish_elsewhere") {
    // What is lost was begun by another.
    finish([] { rpc_ff(rank_count() - 1, [] { rpc_ff(victim, sleep_long); }); });
  }
  if (how == "finish_all" || how == "finish_all_first" || how == "finish_all_others")
    finish_all([] { rpc_ff(victim, sleep_long); }, how == "finish_all" ? team::world() : part);
  if (how == "finish_all_after") {
    // It begins when this rank knows already.
    try {
      rpc(victim, sleep_long).get();
    } catch (const rank_lost&) {
      finish_all([] {});
    }
  }
  if (how == "barrier") barrier();
  if (how == "reduce") (void)reduce(1, [](int a, int b) { return a + b; });
  if (how == "under_way") {
    // Nobody waits in them when the rank dies.
    auto sum = reduce_async(std::string("x"), std::plus<>{});
    auto meeting = barrier_async();
    while (!sum.ready() || !meeting.ready()) sleep_for(std::chrono::milliseconds(1));
    try {
      meeting.get();
    } catch (const rank_lost&) {
      (void)sum.get();
    }
  }
  if (how == "team") {
    // Those without the victim go on.
    if (rank_me() > victim) barrier(part);
    (void)reduce(1, std::plus<>{}, rank_me() > victim ? team::world() : part);
  }
  if (how == "gets" || how == "puts" || how == "atomics") {
    // Until there is nobody to ask.
    for (;;) {
      long x = 0;
      completions done;
      const auto word = global_ptr<long>::at(there.address());
      if (how == "gets") load(word, x, done);
      if (how == "puts") store(word, 1L, done);
      if (how == "atomics") {
        (void)atomic_fetch_add(global_ptr<global_atomic<long>>::at(there.address()), 1);
      }
      done.wait();
      yield();
    }
  }
  if (how == "room" || how == "bundles") {
    if (how == "bundles") {
      aggregated here;
      for (;;) rpc_ff(victim, [](long) {}, 5L);
    }
    for (;;) rpc_ff(victim, [](long) {}, 5L);
  }
  if (how == "view") {
    // A copy of it waits here to be read.
    const std::vector<char> all(long_bytes);
    future<std::size_t> size = rpc(victim, [](view<char> v) { return v.size(); }, view(all));
    (void)size.get();
  }
  if (how == "again") {
    try {
      rpc(victim, sleep_long).get();
    } catch (const rank_lost&) {
      rpc(victim, [] {}).get();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "call";
  const bool uncaught = argc > 2;
  return run(argc, argv, [=] {
    if (how == "slowly") std::signal(SIGUSR2, [](int) { std::abort(); });
    const auto there =
        broadcast(rank_me() == victim ? make<object>(victim) : global_ptr<object>(), victim);
    of_rank_0 = broadcast(rank_me() == 0 ? make<object>(0) : global_ptr<object>(), 0);
    versions_of_victim =
        broadcast(rank_me() == victim ? make_replicated<object>() : replicated<object>(), victim);
    versions_of_rank_0 =
        broadcast(rank_me() == 0 ? make_replicated<object>() : replicated<object>(), 0);
    if (how == "team") part = team::world().split(rank_me() > victim);
    // Without the victim, which dies all the same.
    if (how == "finish_all_others") part = team::world().split(rank_me() == victim);
    if (how == "finish_all_first") part = team::world().split(0, rank_me() == victim ? 0 : 1);
    barrier();
    if (rank_me() == victim) {
      if (how == "subscriber") (void)versions_of_rank_0.read<&object::get>();
      if (how == "room" || how == "bundles" || how == "view" || how == "subscriber" ||
          how == "subscribes") {
        // Hears nobody meanwhile.
        const std::uint64_t end = now_ns() + 50'000'000;
        while (now_ns() < end) {
        }
        std::raise(SIGKILL);
      }
      if (how.ends_with("_gone")) end_before_it_is_used(how);
      if (how == "slowly") die_slowly();
      if (how == "object_holder") (void)of_rank_0.call<&object::bump>(via::fetch);
      if (how == "fetched") {
        for (const auto object_of : {of_rank_0, there}) {
          for (int i = 0; i < 40; ++i) (void)object_of.call<&object::bump>(via::fetch);
        }
      }
      if (how == "copy_holder") {
        for (int i = 0; i < 40; ++i) {
          (void)of_rank_0.call<&object::get>(via::cache);
          sleep_for(std::chrono::milliseconds(1));
        }
      }
      // It has taken part until then.
      if (how == "finish_all" || how == "finish_all_first")
        finish_all(die_later, how == "finish_all" ? team::world() : part);
      die_later();
    }
    if (uncaught) wait(how, there);
    try {
      wait(how, there);
      std::printf("rank %d: nothing was lost\n", rank_me());
    } catch (const rank_lost& e) {
      std::printf("rank %d: lost %d: %s\n", rank_me(), e.rank(), e.what());
    }
    // Others are alive.
    const rank_t other = rank_me() == 0 ? rank_count() - 1 : 0;
    if (other != victim) {
      std::printf("rank %d: rank %d answers %d\n", rank_me(), other,
                  rpc(other, [] { return rank_me(); }).get());
    }
    std::fflush(stdout);
    sleep_for(std::chrono::milliseconds(200));  // the others may still ask
    return 0;
  });
}
