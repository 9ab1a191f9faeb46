// SPDX-License-Identifier: Apache-2.0
// Threads that the program makes itself use Sojourn, in the way the argument says; other_threads.sh
// reads what is said then.
#include <sojourn/shared.hpp>
#include <sojourn/sojourn.hpp>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

struct cell {
  long value = 1;
  long get() const { return value; }
};

void nothing() {}

mutex held;

/// What a thread of the program must not do.
std::map<std::string, std::function<void()>> refused() {
  static mutex lock;
  static semaphore units(1);
  static latch gate(2);
  static stop_source stop;
  static auto wait = make_continuation<int>();
  static long* shared_words = shared::alloc<long>(10);
  static global_ptr<cell> here = make<cell>(rank_me());
  static global_ptr<cell> there = make<cell>((rank_me() + 1) % rank_count());
  static rank_t other = (rank_me() + 1) % rank_count();
  return {
      {"rpc", [] { (void)rpc(other, [] {}).get(); }},
      {"rpc_ff", [] { rpc_ff(other, [] {}); }},
      {"rpc_ff_bundled", [] { rpc_ff(other, nothing); }},
      {"rpc_ff_here", [] { rpc_ff(rank_me(), [] {}); }},
      {"method", [] { (void)there.call<&cell::get>(); }},
      {"barrier", [] { barrier(); }},
      {"make", [] { (void)make<cell>(rank_me()); }},
      {"make_there", [] { (void)make<cell>(other); }},
      {"destroy", [] { destroy(here); }},
      {"lock", [] { lock.lock(); }},
      {"unlock", [] { held.unlock(); }},
      {"try_acquire", [] { (void)units.try_acquire(); }},
      {"release", [] { units.release(); }},
      {"request_stop", [] { stop.request_stop(); }},
      {"answer", [] { wait.first(1); }},
      {"fail", [] { wait.first.fail(std::make_exception_ptr(error("no answer"))); }},
      {"activate", [] { (void)activate([] { return 1; }); }},
      {"shared_alloc", [] { (void)shared::alloc<long>(10); }},
      {"shared_free", [] { shared::free(shared_words); }},
      {"count_down", [] { gate.count_down(); }},
      {"spawn", [] { spawn([] {}).join(); }},
      {"sleep", [] { sleep_for(1ms); }},
      {"yield", [] { yield(); }},
      {"finish", [] { finish([] {}); }},
      {"migrate", [] { activate([](rank_t r) { migrate_to(r); }, other); }},
      {"blocking_fork", [] { fork([] { yield(); }).get(); }},
  };
}

void post_and_say_why_not() {
  try {
    post([] {});
  } catch (const error& e) {
    std::printf("caught: %s\n", e.what());
  }
}

int job(const std::string& what) {
  if (what == "pthread_exit") pthread_exit(nullptr);
  if (what == "pthread_exit_of_system") {
    const auto call = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "pthread_exit"));
    if (call != nullptr) call(nullptr);
  }
  if (what == "pthread_exit_in_call") rpc(rank_count() - 1, [] { pthread_exit(nullptr); }).get();
  if (what == "throws") {
    std::thread([] { post([] { throw std::runtime_error("nobody hears it"); }); }).join();
    for (;;) yield();
  }
  if (what == "circle") {
    std::thread([] {
      std::this_thread::sleep_for(4s);
      _exit(7);
    }).detach();
    mutex a;
    mutex b;
    const auto both = [](mutex& first, mutex& second) {
      first.lock();
      yield();
      second.lock();
    };
    auto one = fork([&] { both(a, b); });
    auto other = fork([&] { both(b, a); });
    one.get();
    other.get();
  }
  const auto all = refused();
  if (const auto one = all.find(what); one != all.end()) {
    std::optional<aggregated> bundles;
    if (what == "rpc_ff_bundled") {
      bundles.emplace();
      rpc_ff((rank_me() + 1) % rank_count(), nothing);
    }
    if (what == "unlock") held.lock();
    barrier();
    std::thread(one->second).join();
    return 3;  // it was not refused
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "list") {
    return run(argc, argv, [] {
      for (const auto& each : refused()) std::printf("%s\n", each.first.c_str());
    });
  }
  if (what == "before") post_and_say_why_not();
  std::promise<void> ended;
  std::thread late;
  const int status = run(argc, argv, [&] {
    if (what == "after") {
      late = std::thread([&] {
        ended.get_future().wait();
        post_and_say_why_not();
      });
    }
    if (what == "left") {
      // Posted while the body's last statement runs, so that the rank has no turn before its end.
      std::thread([] { post([] { std::printf("ran\n"); }); }).join();
    }
    return job(what);
  });
  ended.set_value();
  if (late.joinable()) late.join();
  return status;
}
