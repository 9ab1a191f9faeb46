// SPDX-License-Identifier: Apache-2.0
#include "phold/simulation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory_resource>
#include <mutex>
#include <queue>
#include <utility>
#include <vector>

#include "common/random.hpp"

namespace apps::phold {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// A plain value: it travels.
struct event {
  double time;
  std::uint32_t from;    ///< Process that caused it …
  std::uint32_t number;  ///< … and how many it had caused before.
  std::uint32_t to;

  /// In the order of handling: no two are equal.
  friend bool operator>(const event& a, const event& b) {
    if (a.time != b.time) return a.time > b.time;
    if (a.from != b.from) return a.from > b.from;
    return a.number > b.number;
  }
};

/// What a process knows but its pending events: equal on all ways to simulate it.
class process_state {
 public:
  process_state(std::uint32_t self, const settings& s)
      : self_(self), random_(mix64(s.seed) + self), checksum_(mix64(self)) {}

  event first(const settings& s) { return next_after(0, self_, s); }

  /// Computes, and returns what it causes.
  event handle(const event& e, const settings& s) {
    checksum_ = mix64(checksum_ ^ std::bit_cast<std::uint64_t>(e.time)) + e.from;
    for (std::uint32_t i = 0; i < s.work; ++i) checksum_ = mix64(checksum_);
    ++handled_;
    std::uint32_t to = self_;
    if (s.processes > 1 && random_.fraction() < s.remote) {
      to = static_cast<std::uint32_t>(random_.below(s.processes - 1));
      to += to >= self_;
    }
    return next_after(e.time, to, s);
  }

  std::uint64_t handled() const { return handled_; }
  std::uint64_t checksum() const { return checksum_; }

 private:
  event next_after(double time, std::uint32_t to, const settings& s) {
    const double delay = s.lookahead - s.mean_delay * std::log(1 - random_.fraction());
    return {time + delay, self_, caused_++, to};
  }

  std::uint32_t self_;
  std::uint32_t caused_ = 0;
  random_source random_;
  std::uint64_t checksum_;
  std::uint64_t handled_ = 0;
};

/// As many events as fit a message well.
struct delivery {
  std::uint32_t count = 0;
  std::array<event, 40> events;
};

/// Where a process gets its mail: it stays, so that senders need not know where the process is.
class mailbox {
 public:
  void put(const event& e) { mail_.push_back(e); }
  /// Some of what is there, or nothing.
  delivery take() {
    delivery d;
    while (!mail_.empty() && d.count < d.events.size()) {
      d.events[d.count++] = mail_.back();
      mail_.pop_back();
    }
    return d;
  }

 private:
  std::vector<event> mail_;
};

/// Says when all processes have done a window, and when the next begins.
class window_clock {
 public:
  explicit window_clock(std::uint32_t processes) : processes_(processes) {}

  /// A process has done its window, and knows of no event before `earliest`. Returns the time of
  /// the earliest of all, once all have said it. Suspends.
  double advance(double earliest) {
    earliest_ = std::min(earliest_, earliest);
    if (++arrived_ < processes_) {
      const std::uint64_t mine = windows_;
      std::unique_lock lock(guard_);
      done_.wait(lock, [&] { return windows_ != mine; });
    } else {
      arrived_ = 0;
      begins_ = std::exchange(earliest_, never);
      ++windows_;
      done_.notify_all();
    }
    return begins_;
  }
  std::uint64_t windows() const { return windows_; }

 private:
  std::uint32_t processes_;
  std::uint32_t arrived_ = 0;
  double earliest_ = never;
  double begins_ = 0;
  std::uint64_t windows_ = 0;
  sojourn::mutex guard_;
  sojourn::condition_variable done_;
};

using mailbox_ptr = sojourn::global_ptr<mailbox>;
using clock_ptr = sojourn::global_ptr<window_clock>;

// Of this rank. Where all mailboxes are is the same everywhere, so threads find it on each.
std::vector<mailbox_ptr> mailboxes;
/// Not inlined: the address of the vector's memory is then in no frame that moves.
[[gnu::noinline]] mailbox_ptr mailbox_of(std::uint32_t process) { return mailboxes[process]; }
std::uint64_t handled_here;
std::uint64_t checksum_here;

/// A logical process. All that it has is in its frame and in its heap, and moves with it at any
/// line that waits.
void process(std::uint32_t self, settings s, clock_ptr clock) {
  process_state state(self, s);
  std::pmr::vector<event> pending(sojourn::thread_heap());
  const auto add = [&](const event& e) {
    pending.push_back(e);
    std::ranges::push_heap(pending, std::greater<>{});
  };
  for (std::uint32_t i = 0; i < s.events; ++i) add(state.first(s));
  double earliest = pending.empty() ? never : pending.front().time;
  for (;;) {
    // By a call, so that this thread waits for an answer, and can move meanwhile.
    const double begins =
        sojourn::rpc(
            clock.where(), [](clock_ptr at, double time) { return at.local()->advance(time); },
            clock, earliest)
            .get();
    if (begins >= s.end) break;
    const mailbox_ptr mine = mailbox_of(self);
    for (;;) {
      const delivery d = mine.call<&mailbox::take>();
      if (d.count == 0) break;
      for (std::uint32_t i = 0; i < d.count; ++i) add(d.events[i]);
    }
    earliest = never;
    const double ends = std::min(begins + s.lookahead, s.end);
    while (!pending.empty() && pending.front().time < ends) {
      const event e = pending.front();
      std::ranges::pop_heap(pending, std::greater<>{});
      pending.pop_back();
      const event caused = state.handle(e, s);
      earliest = std::min(earliest, caused.time);
      if (caused.to == self) {
        add(caused);
      } else {
        mailbox_of(caused.to).call<&mailbox::put>(caused);
      }
    }
    if (!pending.empty()) earliest = std::min(earliest, pending.front().time);
  }
  handled_here += state.handled();
  checksum_here += state.checksum();
}

std::uint64_t sum(std::uint64_t mine) { return sojourn::reduce(mine, std::plus<>{}); }

}  // namespace

result simulate(const settings& chosen) {
  // Rank r owns the mailboxes r, r + ranks, … and tells all where they are.
  mailboxes.assign(chosen.processes, {});
  const auto ranks = static_cast<std::uint32_t>(sojourn::rank_count());
  for (std::uint32_t p = 0; p < chosen.processes; ++p) {
    const auto owner = static_cast<sojourn::rank_t>(p % ranks);
    if (owner == sojourn::rank_me()) mailboxes[p] = sojourn::make<mailbox>(owner);
    mailboxes[p] = sojourn::broadcast(mailboxes[p], owner);
  }
  clock_ptr clock;
  if (sojourn::rank_me() == 0) clock = sojourn::make<window_clock>(0, chosen.processes);
  clock = sojourn::broadcast(clock);
  handled_here = checksum_here = 0;
  sojourn::barrier();

  const sojourn::counters before = sojourn::counters_now();
  const std::uint64_t start_ns = sojourn::now_ns();
  if (sojourn::rank_me() == 0) {
    std::vector<sojourn::thread> all;
    for (std::uint32_t p = 0; p < chosen.processes; ++p) {
      sojourn::thread_options options{.name = "process"};
      if (chosen.affinity) options.affinity = mailboxes[p];
      const auto rank = chosen.spread ? static_cast<sojourn::rank_t>(p % ranks) : 0;
      all.push_back(sojourn::spawn_on(rank, options, process, p, chosen, clock));
    }
    for (sojourn::thread t : all) t.join();
  }
  sojourn::barrier();
  result r;
  r.seconds = sojourn::broadcast(static_cast<double>(sojourn::now_ns() - start_ns) * 1e-9);
  r.spent = sojourn::reduce(sojourn::counters_now() - before, std::plus<>{});
  r.events = sum(handled_here);
  r.checksum = sum(checksum_here);
  r.windows = clock.call<&window_clock::windows>();
  sojourn::barrier();
  for (const mailbox_ptr m : mailboxes) {
    if (m.is_local()) sojourn::destroy(m);
  }
  if (sojourn::rank_me() == 0) sojourn::destroy(clock);
  return r;
}

result simulate_alone(const settings& chosen) {
  std::vector<process_state> all;
  std::priority_queue<event, std::vector<event>, std::greater<>> pending;
  for (std::uint32_t p = 0; p < chosen.processes; ++p) {
    all.emplace_back(p, chosen);
    for (std::uint32_t i = 0; i < chosen.events; ++i) pending.push(all.back().first(chosen));
  }
  while (!pending.empty() && pending.top().time < chosen.end) {
    const event e = pending.top();
    pending.pop();
    pending.push(all[e.to].handle(e, chosen));
  }
  result r;
  for (const process_state& p : all) {
    r.events += p.handled();
    r.checksum += p.checksum();
  }
  return r;
}

}  // namespace apps::phold
