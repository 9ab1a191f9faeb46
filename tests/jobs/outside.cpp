// SPDX-License-Identifier: Apache-2.0
// Calls of the runtime where there is no job: each works there, or says in a sentence that it needs
// run(). Usage: job_outside CALL MOMENT, where MOMENT is constructor (of a static object), before,
// after (run()), again (after a second run()) or destructor; or job_outside names: prints the names
// of all calls.
#include <sojourn/xthreads.h>
#include <sojourn/shared.hpp>
#include <sojourn/sojourn.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

struct cell {
  int value = 0;
  int add(int more) { return value += more; }
};
struct guarded : monitor {
  int value = 0;
  int add(int more) { return value += more; }
};
int twice(int n) { return 2 * n; }
void nothing() {}
constexpr auto sum = [](int a, int b) { return a + b; };
using by_name = method<"outside.twice", int(int)>;

const global_ptr<cell> none;
global_ptr<long> no_array;

shared::pointer<long> left_behind;

using calls = std::map<std::string, std::function<void()>>;
const calls& all() {
  static const calls table = {
      // What needs no job.
      {"who", [] { (void)(rank_me() + rank_count()); }},
      {"clock", [] { (void)now_ns(); }},
      {"counters", [] { (void)counters_now(), (void)shared::counters_now(); }},
      {"mutex",
       [] {
         mutex m;
         std::lock_guard holds(m);
       }},
      {"semaphore",
       [] {
         semaphore s(1);
         s.acquire();
         s.release();
       }},
      {"latch",
       [] {
         latch l(1);
         l.arrive_and_wait();
       }},
      {"condition",
       [] {
         condition_variable c;
         c.notify_all();
       }},
      {"child", [] { (void)fork(twice, 3).get(); }},
      {"par_for", [] { par_for(0, 9, [](int) {}); }},
      {"activation", [] { (void)activate(twice, 3); }},
      {"migrate_to", [] { (void)migrate_to(0); }},
      {"stay", [] { stay here; }},
      {"policy", [] { (void)balance_now(); }},
      {"restored", [] { (void)restored(); }},
      {"team", [] { (void)team::world().rank_count(); }},
      {"flush", [] { flush(); }},
      // What does.
      {"make", [] { (void)make<cell>(0); }},
      {"make_far", [] { (void)make<cell>(1); }},
      {"make_array", [] { (void)make_array<long>(0, 100); }},
      {"destroy", [] { destroy(none); }},
      {"rpc", [] { rpc(0, twice, 3).get(); }},
      {"rpc_text", [] { rpc(0, [](const std::string& s) { return s; }, std::string("x")).get(); }},
      {"rpc_ff", [] { rpc_ff(0, nothing); }},
      {"rpc_named", [] { rpc(0, by_name(), 3).get(); }},
      {"aggregated",
       [] {
         aggregated scope;
         rpc_ff(0, nothing);
       }},
      {"access", [] { none.call<&cell::add>(1); }},
      {"access_async", [] { none.async<&cell::add>(1).get(); }},
      {"monitor",
       [] {
         guarded g;
         global_ptr<guarded>(&g).call<&guarded::add>(1);
       }},
      {"load", [] { (void)load(no_array); }},
      {"store", [] { store(no_array, 3L); }},
      {"get",
       [] {
         std::array<long, 2> to;
         get(no_array, std::span<long>(to));
       }},
      {"put",
       [] {
         const std::array<long, 2> from{};
         put(std::span<const long>(from), no_array);
       }},
      {"load_async", [] { (void)load_async(no_array).get(); }},
      {"spawn", [] { spawn(nothing).join(); }},
      {"spawn_on", [] { spawn_on(1, nothing).detach(); }},
      {"self", [] { (void)self(); }},
      {"thread_name", [] { (void)this_thread_name(); }},
      {"name_thread", [] { name_this_thread("x"); }},
      {"affinity", [] { set_affinity(affinity()); }},
      {"thread_heap", [] { (void)thread_heap()->allocate(8); }},
      {"migrate", [] { migrate(thread(), 0); }},
      {"join", [] { thread().join(); }},
      {"xthread",
       [] {
         xthread_t t;
         (void)xthread_create(&t, [](void*) {}, nullptr, 0);
       }},
      {"xthread_yield", [] { xthread_yield(); }},
      {"barrier", [] { barrier(); }},
      {"barrier_async", [] { barrier_async().get(); }},
      {"reduce", [] { (void)reduce(1, sum); }},
      {"reduce_async", [] { (void)reduce_async(1, sum).get(); }},
      {"broadcast", [] { (void)broadcast(1, 0); }},
      {"gather", [] { (void)gather(1, 0); }},
      {"all_to_all", [] { (void)all_to_all(std::vector<int>(1)); }},
      {"split", [] { (void)team::world().split(0, 0); }},
      {"finish", [] { finish([] {}); }},
      {"yield", [] { yield(); }},
      {"sleep", [] { sleep_for(1ms); }},
      {"wait", [] { latch(1).wait(); }},
      {"wait_for", [] { (void)semaphore(0).try_acquire_for(1ms); }},
      {"future",
       [] {
         future<int> f;
         f.get();
       }},
      {"then", [] { (void)fork(twice, 3).then([](int x) { return x; }).get(); }},
      {"when_all", [] { (void)when_all(fork(twice, 1), fork(twice, 2)).get(); }},
      {"touch",
       [] {
         auto a = fork(twice, 1), b = fork(twice, 2);
         touch(a, b);
       }},
      {"when_any", [] { (void)when_any(fork(twice, 1), fork(twice, 2)).get(); }},
      {"continuation",
       [] {
         auto [c, f] = make_continuation<int>();
         c(3);
         (void)f.get();
       }},
      {"call_cc", [] { (void)call_cc([](continuation<int> c) { c(3); }); }},
      {"rpc_cc", [] { (void)rpc_cc(0, [](continuation<int> c) { c(3); }).get(); }},
      {"stop",
       [] {
         stop_source s;
         auto t = s.token();
         s.request_stop();
         (void)t.stop_requested();
       }},
      {"dist_object",
       [] {
         dist_object<cell> d;
         (void)d.fetch(0).get();
       }},
      {"balance", [] { balance(balance_policy::steal); }},
      {"checkpoint", [] { checkpoint("/nowhere/x"); }},
      {"restored_root", [] { (void)restored_root<int>(); }},
      {"shared_alloc", [] { shared::free(shared::alloc<long>(5)); }},
      {"shared_free", [] { shared::free(nullptr); }},
      {"shared_capacity", [] { (void)shared::capacity(); }},
      {"shared_resource", [] { (void)shared::resource()->allocate(8); }},
      {"shared_barrier", [] { shared::barrier(); }},
      {"shared_local_barrier", [] { shared::local_barrier(); }},
      {"shared_mutex",
       [] {
         shared::mutex m;
         m.lock();
         m.unlock();
       }},
      {"shared_fair_mutex",
       [] {
         shared::fair_mutex m;
         m.lock();
         m.unlock();
       }},
      {"shared_try_lock",
       [] {
         shared::mutex m;
         (void)m.try_lock();
       }},
      {"shared_condition",
       [] {
         shared::condition_variable c;
         c.notify_all();
       }},
      {"shared_flag",
       [] {
         shared::flag f;
         f.set();
       }},
      {"shared_atomic",
       [] {
         shared::atomic<long> a;
         a.fetch_add(1);
       }},
      {"shared_counted",
       [] {
         shared::counted_barrier b;
         b.arrive_and_wait(1);
       }},
      {"shared_reduce", [] { (void)shared::reduce_all(1, sum); }},
      {"shared_threads", [] { shared::run_threads(2, [](int) {}); }},
      {"shared_thread", [] { (void)(shared::thread() + shared::threads()); }},
      {"shared_pinned",
       [] {
         long x = 0;
         shared::pinned p(&x, sizeof x);
       }},
      {"shared_undivided", [] { shared::undivided u; }},
      {"shared_write",
       [] {
         char c = ' ';
         (void)shared::write(2, &c, 0);
       }},
      {"shared_access",
       [] {
         if (left_behind != nullptr) *left_behind += 1;
       }},
      {"shared_pointer",
       [] {
         long x = 0;
         (void)shared::pointer<long>(&x);
       }},
  };
  return table;
}

void make_call(const std::string& name) {
  try {
    all().at(name)();
    std::printf("%s works\n", name.c_str());
  } catch (const error& e) {
    std::printf("%s is refused: %s\n", name.c_str(), e.what());
  }
  std::fflush(stdout);
}

std::string argument(int number) {
  static char text[4096];
  static const std::size_t bytes = [] {
    std::FILE* file = std::fopen("/proc/self/cmdline", "r");
    const std::size_t read = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    return read;
  }();
  const char* at = text;
  for (int i = 0; i < number && at < text + bytes; ++i) at += std::strlen(at) + 1;
  return at < text + bytes ? at : "";
}

struct around_main {
  around_main() {
    (void)all();
    if (argument(2) == "constructor") make_call(argument(1));
  }
  ~around_main() {
    if (argument(2) == "destructor") make_call(argument(1));
  }
} around;

}  // namespace

int main(int argc, char** argv) {
  if (argument(1) == "names") {
    for (const auto& [name, call] : all()) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (argument(2) == "before") make_call(argument(1));
  const int status = run(argc, argv, [] {
    if (argument(1) != "shared_access") return barrier();
    left_behind = broadcast(rank_me() == 0 ? shared::pointer<long>(shared::alloc<long>())
                                           : shared::pointer<long>());
    if (rank_me() == 0) *left_behind = 7;
    shared::barrier();
  });
  if (argument(2) == "after") make_call(argument(1));
  if (argument(2) == "again") return run(argc, argv, [] { barrier(); });
  return status;
}
