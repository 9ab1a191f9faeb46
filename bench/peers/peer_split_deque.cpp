// SPDX-License-Identifier: Apache-2.0
//
// The programs of common/fork_kernels.hpp with the design of Lace, written by hand because Debian
// has no package of it: fib, fib_both, tak, qsort, queens, list on one worker; two.fib, … on two.
//
// Tasks lie in an array of each worker. Its owner adds and takes at the head; others steal at the
// tail. A split between them says which may be stolen, so that the owner's part takes no atomic
// instruction: it moves the split up when a thief has asked for that, and down when its own part is
// empty. Who waits for a stolen task steals from its thief meanwhile.
// Source: van Dijk and van de Pol, "Lace: Non-blocking Split Deque for Work-Stealing" (2014).

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <tuple>

#include "common/fork_kernels.hpp"
#include "peers/kernel_peer.hpp"

namespace {

class worker;

constexpr std::size_t argument_bytes = 48;
constexpr std::size_t tasks_max = std::size_t{1} << 16;

/// A line of the caches.
struct alignas(64) task {
  void (*run)(task*);
  /// Null until a thief is known; it is stored again, as `done`, when the task has run there.
  std::atomic<worker*> thief;
  unsigned char arguments[argument_bytes];
};

/// What thieves change: the next task to steal, and the first one that is private.
struct tail_and_split {
  std::uint32_t tail;
  std::uint32_t split;
};

class worker {
 public:
  worker() : tasks_(std::make_unique<task[]>(tasks_max)) {}

  static thread_local worker* self;
  static worker* done() { return reinterpret_cast<worker*>(std::uintptr_t{1}); }

  template <class Fill>
  [[gnu::always_inline]] void spawn(void (*run)(task*), Fill fill) {
    task& t = tasks_[head_];
    if (head_ + 1 == tasks_max) std::abort();
    t.run = run;
    t.thief.store(nullptr, std::memory_order_relaxed);
    fill(t.arguments);
    ++head_;
    if (all_stolen_) [[unlikely]] {
      share_the_newest();
    } else if (move_split_.load(std::memory_order_relaxed)) [[unlikely]] {
      share_half();
    }
  }

  /// The newest task: runs it here, or waits for who has stolen it.
  [[gnu::always_inline]] void sync() {
    if (!move_split_.load(std::memory_order_relaxed) && split_ < head_) [[likely]] {
      task& t = tasks_[--head_];
      return t.run(&t);
    }
    sync_slowly();
  }

  /// False when there was nothing, or another was quicker.
  bool steal_from(worker& victim) {
    if (victim.is_all_stolen_.load(std::memory_order_acquire)) return false;
    tail_and_split was = victim.public_.load(std::memory_order_acquire);
    if (was.tail >= was.split) {
      if (!victim.move_split_.load(std::memory_order_relaxed)) {
        victim.move_split_.store(true, std::memory_order_relaxed);
      }
      return false;
    }
    const std::uint32_t mine = was.tail;
    if (!victim.public_.compare_exchange_strong(was, {mine + 1, was.split})) return false;
    task& t = victim.tasks_[mine];
    t.thief.store(this, std::memory_order_release);
    t.run(&t);
    t.thief.store(done(), std::memory_order_release);
    return true;
  }

 private:
  [[gnu::noinline]] void share_the_newest() {
    split_ = head_;
    public_.store({head_ - 1, split_}, std::memory_order_release);
    is_all_stolen_.store(false, std::memory_order_release);
    all_stolen_ = false;
    move_split_.store(false, std::memory_order_relaxed);
  }
  [[gnu::noinline]] void share_half() {
    if (head_ == split_) return move_split_.store(false, std::memory_order_relaxed);
    set_split((split_ + head_ + 1) / 2);
    move_split_.store(false, std::memory_order_relaxed);
  }
  /// Thieves may change the tail meanwhile. Returns what it is afterwards.
  std::uint32_t set_split(std::uint32_t split) {
    tail_and_split now = public_.load(std::memory_order_relaxed);
    while (!public_.compare_exchange_weak(now, {now.tail, split})) {
    }
    split_ = split;
    return now.tail;
  }
  /// Takes back half of what is shared. False when all of it is stolen.
  bool take_back() {
    const tail_and_split now = public_.load();
    const std::uint32_t end = now.split;
    if (now.tail < end) {
      const std::uint32_t tail = set_split((now.tail + end) / 2);
      if (tail < end) {
        if (tail > split_) set_split((tail + end) / 2);
        return true;
      }
      set_split(end);
    }
    is_all_stolen_.store(true, std::memory_order_release);
    all_stolen_ = true;
    return false;
  }
  [[gnu::noinline]] void sync_slowly() {
    task& t = tasks_[head_ - 1];
    if (all_stolen_ || (split_ >= head_ && !take_back())) {
      wait_for(t);
      // What was stolen back meanwhile may have been spawned on top of it; nothing is shared now.
      is_all_stolen_.store(true, std::memory_order_release);
      all_stolen_ = true;
      --head_;
      return;
    }
    --head_;
    if (move_split_.load(std::memory_order_relaxed)) share_half();
    t.run(&t);
  }
  void wait_for(task& t) {
    worker* thief = t.thief.load(std::memory_order_acquire);
    while (thief == nullptr) thief = t.thief.load(std::memory_order_acquire);
    while (thief != done()) {
      steal_from(*thief);
      thief = t.thief.load(std::memory_order_acquire);
    }
  }

  std::unique_ptr<task[]> tasks_;
  std::uint32_t head_ = 0;
  std::uint32_t split_ = 0;
  bool all_stolen_ = true;
  alignas(64) std::atomic<tail_and_split> public_{tail_and_split{0, 0}};
  std::atomic<bool> is_all_stolen_{true};
  std::atomic<bool> move_split_{false};
};

thread_local worker* worker::self = nullptr;

struct by_split_deque {
  struct group {
    std::size_t children = 0;
    void join() {
      for (; children != 0; --children) worker::self->sync();
    }
  };
  template <class T>
  struct child {
    T value;
    template <class F, class... A>
    [[gnu::always_inline]] child(group& here, F, A... arguments) {
      using stored = std::tuple<child*, A...>;
      static_assert(sizeof(stored) <= argument_bytes && std::is_empty_v<F>);
      worker::self->spawn(
          [](task* t) {
            const auto* const all = reinterpret_cast<stored*>(t->arguments);
            std::apply([](child* to, A... a) { to->value = F{}(a...); }, *all);
          },
          [&](void* room) { ::new (room) stored(this, arguments...); });
      ++here.children;
    }
    T get() { return value; }
  };
};
template <>
struct by_split_deque::child<void> {
  template <class F, class... A>
  [[gnu::always_inline]] child(group& here, F, A... arguments) {
    using stored = std::tuple<A...>;
    static_assert(sizeof(stored) <= argument_bytes && std::is_empty_v<F>);
    worker::self->spawn([](task* t) { std::apply(F{}, *reinterpret_cast<stored*>(t->arguments)); },
                        [&](void* room) { ::new (room) stored(arguments...); });
    ++here.children;
  }
  void get() {}
};

/// A second worker that steals from the first while it is told to.
class helper {
 public:
  helper(worker& first, int cpu)
      : first_(first), thread_([this, cpu] {
          bench::pin_to_cpu(cpu);
          worker::self = &mine_;
          for (;;) {
            state_.wait(asleep);
            if (state_.load() == ended) return;
            stealing_.store(true);
            while (state_.load(std::memory_order_relaxed) == at_work) mine_.steal_from(first_);
            stealing_.store(false);
            stealing_.notify_one();
          }
        }) {}
  ~helper() {
    state_.store(ended);
    state_.notify_one();
    thread_.join();
  }
  helper(const helper&) = delete;
  helper& operator=(const helper&) = delete;

  void begin() {
    state_.store(at_work);
    state_.notify_one();
  }
  void end() {
    state_.store(asleep);
    stealing_.wait(true);
  }

 private:
  static constexpr int asleep = 0, at_work = 1, ended = 2;

  worker& first_;
  worker mine_;
  std::atomic<int> state_{asleep};
  std::atomic<bool> stealing_{false};
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  static worker first;
  worker::self = &first;
  std::unique_ptr<helper> second;
  const std::vector<int> cpus = bench::parse_options(argc, argv, "fib").cpus;
  return bench::run_kernel_peer("split deque", "fib", argc, argv,
                                [&](std::string_view operation, const bench::batch_plan& plan) {
                                  const bool two = operation.starts_with("two.") && cpus.size() > 1;
                                  if (two) {
                                    if (!second) second = std::make_unique<helper>(first, cpus[1]);
                                    operation.remove_prefix(4);
                                    second->begin();
                                  }
                                  auto figures =
                                      bench::kernels::time_way<by_split_deque>(operation, plan);
                                  if (two) second->end();
                                  return figures;
                                });
}
