// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <iterator>
#include <random>
#include <span>
#include <utility>

#include "memory/runtime_resource.hpp"
#include "shared/pages/page_message.hpp"
#include "shared/pages/rank_pages.hpp"
#include "shared/pages/rules.hpp"

namespace simulated {

namespace {

using namespace sojourn::detail::pages;  // NOLINT: these files are about nothing else.
using sojourn::detail::pages::access;    // And not that of <unistd.h>.

/// Far more steps than any of these programs needs.
constexpr std::uint64_t livelock_steps = 200000;

class job;

struct thread {
  enum class state {
    runs,
    waits_for_page,
    waits_for_lock,
    waits_at_barrier,
    waits_for_answer,
    moves
  };
  int number = 0;
  int rank = 0;
  std::size_t next = 0;
  state now = state::runs;
  page_number page = 0;
  access needs = access::none;  ///< Of this page.
  bool had_to_wait = false;     ///< For the lock or barrier of its next instruction.
  std::uint64_t round = 0;
  std::size_t faulted = none;  ///< The instruction at which it did last.
  struct pin {
    page_number page;
    access how;
  };
  std::vector<pin> pinned = {};
  std::uint32_t pages_pinned = 0;  ///< By its next instruction.
  event_answer answer{};           ///< To what it has asked.
  enum class waiting { begins, asks, has_unlocked, locks } condition = waiting::begins;
  static constexpr std::size_t none = SIZE_MAX;
};

struct message {
  std::vector<std::byte> bytes;
  int mover = -1;  ///< A thread that moves.
};

/// Wrong also where a message was changed.
struct lasting_failure : failure {
  using failure::failure;
};

class rank final : public services {
 public:
  rank(job& j, int me);

  std::byte* bytes(page_number page) override { return &memory_[page * page_bytes]; }
  void protect(page_range range, access from, access to) override {
    for (page_number g = range.first; g < range.first + range.count; ++g) {
      if (allowed[g] != from)
        throw lasting_failure("protection is not what the protocol thinks it is");
      allowed[g] = to;
    }
  }
  void send(int to, std::span<const std::byte> front, std::span<const std::byte> back) override;
  void wake_page(page_number page, access may) override;
  void wake_locker(waiter fiber) override;
  void wake_barrier() override;
  void answered(waiter fiber, const event_answer& a) override;
  int home_of(std::uint64_t object) override;
  std::uint32_t fetched_together(page_number page) override;
  std::pmr::memory_resource* memory() override { return &counted_; }
  void refuse(int from, const char* why) override {
    throw refusal("a message from rank " + std::to_string(from) + " " + why);
  }

  const int me;
  std::vector<access> allowed;

 private:
  job& job_;
  std::vector<std::byte> memory_;
  /// Counts what is kept of the pool.
  class counted final : public std::pmr::memory_resource {
   public:
    std::size_t kept = 0;

   private:
    void* do_allocate(std::size_t bytes, std::size_t align) override {
      if (bytes > std::size_t{64} << 20) throw lasting_failure("a rank asks for too much memory");
      kept += bytes;
      return pool_.allocate(sojourn::detail::bytes_for_pool(bytes, align), align);
    }
    void do_deallocate(void* block, std::size_t bytes, std::size_t align) override {
      kept -= bytes;
      pool_.deallocate(block, sojourn::detail::bytes_for_pool(bytes, align), align);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
      return this == &other;
    }
    std::pmr::unsynchronized_pool_resource pool_;
  };
  counted counted_;

 public:
  std::size_t kept() const { return counted_.kept; }
  void note_received(const std::vector<std::byte>& message) {
    message_head head;
    std::memcpy(static_cast<void*>(&head), message.data(), sizeof head);
    if (head.what == page_message::arrival || head.what == page_message::departure)
      barrier_bytes_received += message.size();
  }
  std::uint64_t barrier_bytes_received = 0;
  sojourn::shared::counters counts;
  std::vector<page_entry> table;
  std::unique_ptr<page_report> report;  ///< Or null.
  std::unique_ptr<rank_pages> pages;
};

class job {
 public:
  job(const program& p, std::uint64_t order, totals& sum, std::string* log, strangers* s = nullptr)
      : p_(p),
        chance_(order),
        first_(static_cast<preference>(chance_() % preferences)),
        sum_(sum),
        log_(log),
        strangers_(s) {
    shadow_.resize(static_cast<std::size_t>(p.variables()));
    ways_.resize(static_cast<std::size_t>(ways * p.ranks * p.ranks));
    for (std::size_t i = 0; i < p.threads.size(); ++i)
      threads_.push_back(
          {.number = static_cast<int>(i),
           .rank = p.threads[i].rank,
           .now = p.threads[i].is_created ? thread::state::moves : thread::state::runs});
    added_.resize(static_cast<std::size_t>(p.objects));
    prepared_.resize(static_cast<std::size_t>(p.objects));
    for (int r = 0; r < p.ranks; ++r) ranks_.push_back(std::make_unique<rank>(*this, r));
    std::uint32_t members = 0;
    for (const script& t : p.threads) {
      if (!t.meets || t.is_created) continue;
      ++members;
      ranks_[static_cast<std::size_t>(t.rank)]->pages->fiber_came();
    }
    for (auto& r : ranks_) r->pages->set_members(members);
  }

  void run() {
    const auto starved = static_cast<int>(chance_() % static_cast<unsigned>(p_.ranks));
    std::vector<int> actions;
    for (std::uint64_t step = 0;; ++step) {
      list_actions(actions);
      if (actions.empty()) break;
      if (step > livelock_steps * p_.rounds) throw lasting_failure("no end in sight: a livelock");
      const auto unwanted = [&](int a) {
        switch (first_) {
          case preference::any:
            return false;
          case preference::threads:
          case preference::always_threads:
            return a >= deliveries();
          case preference::messages:
          case preference::always_messages:
            return a < deliveries();
          case preference::starves_a_rank:
            return rank_of_action(a) == starved;
        }
        return false;
      };
      if (first_ == preference::always_threads || first_ == preference::always_messages) {
        const bool choice = !std::all_of(actions.begin(), actions.end(), unwanted);
        if (choice) std::erase_if(actions, unwanted);
      }
      const bool in_turn = first_ == preference::always_messages && actions.back() < deliveries();
      int a = in_turn ? next_thread_of(actions) : one_of(actions);
      for (int again = 0; again < 3 && !in_turn && unwanted(a); ++again) a = one_of(actions);
      act(a);
      ++sum_.steps;
      if (p_.rounds > 1 && step % 64 == 0) note_kept();
    }
    for (const thread& t : threads_)
      if (t.next < code(t).size())
        throw failure("deadlock: thread " + std::to_string(t.number) + " waits for ever");
    for (const auto& r : ranks_)
      if (r->report != nullptr && !r->report->races().empty())
        throw failure("a data race is told of a program that has none");
    for (const auto& way : ways_)
      if (!way.empty()) throw failure("a message cannot be delivered at the end");
    for (const auto& r : ranks_) {
      sum_.barrier_bytes_sent = std::max(sum_.barrier_bytes_sent, r->counts.barrier_message_bytes);
      sum_.barrier_bytes_received =
          std::max(sum_.barrier_bytes_received, r->barrier_bytes_received);
      sum_.intervals += r->counts.intervals;
      sum_.collections += r->counts.collections;
    }
  }

  const program& prog() const { return p_; }
  /// With messages always first, a collection that the twins of a single instruction made a rank
  /// ask for would end before the instruction runs, and take its twins away, for ever.
  std::size_t collect_bytes() const {
    const std::size_t room =
        first_ != preference::always_messages ? 0 : (p_.pins ? 12 : 4) * page_bytes;
    return std::max(p_.collect_bytes, room);
  }
  std::vector<thread>& threads() { return threads_; }
  /// The messages of one rank to another, which go one of two ways.
  std::deque<message>& way_of(ordered_with w, int from, int to) {
    return ways_[static_cast<std::size_t>((static_cast<int>(w) * p_.ranks + from) * p_.ranks + to)];
  }
  void count_message(std::size_t bytes) {
    ++sum_.messages;
    sum_.bytes += bytes;
  }
  template <class... Parts>
  void note(const Parts&... parts) {
    if (log_ == nullptr) return;
    const auto text = [](const auto& x) {
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(x)>>)
        return std::to_string(x);
      else
        return std::string(x);
    };
    ((*log_ += text(parts)), ...);
    *log_ += '\n';
  }

 private:
  /// What happens first where there is a choice: mostly, or always.
  enum class preference { any, threads, messages, starves_a_rank, always_threads, always_messages };
  static constexpr unsigned preferences = 6;
  static constexpr int ways = 2;

  int one_of(const std::vector<int>& actions) { return actions[chance_() % actions.size()]; }
  /// Threads in turn: the order in which ranks would take pages from each other for ever, if they
  /// could.
  int next_thread_of(const std::vector<int>& actions) {
    const auto next = std::upper_bound(actions.begin(), actions.end(), last_);
    last_ = next == actions.end() ? actions.front() : *next;
    return last_;
  }

  const std::vector<instruction>& code(const thread& t) const {
    return p_.threads[static_cast<std::size_t>(t.number)].code;
  }
  bool meets(const thread& t) const { return p_.threads[static_cast<std::size_t>(t.number)].meets; }
  rank& rank_at(int r) { return *ranks_[static_cast<std::size_t>(r)]; }
  rank& rank_of(const thread& t) { return rank_at(t.rank); }

  // Actions are threads' next instructions, then doorbells in threads, which tell their rank that
  // they are behind the instruction that faulted, then deliveries, by sender and receiver.
  int deliveries() const { return 2 * static_cast<int>(threads_.size()); }
  thread& thread_of_action(int a) {
    return threads_[static_cast<std::size_t>(a) % threads_.size()];
  }
  int rank_of_action(int a) {
    return a < deliveries() ? thread_of_action(a).rank : (a - deliveries()) % p_.ranks;
  }
  void list_actions(std::vector<int>& out) {
    out.clear();
    for (const thread& t : threads_)
      if (t.now == thread::state::runs && t.next < code(t).size() &&
          (!stands_still(t.rank) || system_goes_on(t)))
        out.push_back(t.number);
    for (const thread& t : threads_)
      if (is_behind(t) && !stands_still(t.rank))
        out.push_back(static_cast<int>(threads_.size()) + t.number);
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      const bool is_request =
          static_cast<int>(i) / p_.ranks / p_.ranks == static_cast<int>(ordered_with::requests);
      const int to = static_cast<int>(i) % p_.ranks;
      if (!ways_[i].empty() && !(is_request && stands_still(to)))
        out.push_back(deliveries() + static_cast<int>(i));
    }
  }
  /// The rank handles nothing but messages about shared memory.
  bool stands_still(int r) { return rank_at(r).pages->lacking_pinned() != nullptr; }
  /// What the system has begun to do with pinned pages goes on even then.
  bool system_goes_on(const thread& t) {
    const auto is_systems = [&](std::size_t i) {
      const operation what = code(t)[i].what;
      return what == operation::system_load || what == operation::system_store;
    };
    return t.next != 0 && is_systems(t.next) &&
           (is_systems(t.next - 1) || code(t)[t.next - 1].what == operation::pin);
  }
  void act(int a) {
    if (a < static_cast<int>(threads_.size())) {
      thread& t = thread_of_action(a);
      execute(t);
      if (t.next == code(t).size() && t.round + 1 < p_.rounds) {
        ++t.round;
        t.next = 0;
      }
      return;
    }
    if (a < deliveries()) return tell_ran(thread_of_action(a));
    const int from = (a - deliveries()) / p_.ranks % p_.ranks;
    const int to = (a - deliveries()) % p_.ranks;
    auto& messages = ways_[static_cast<std::size_t>(a - deliveries())];
    const message m = std::move(messages.front());
    messages.pop_front();
    rank& r = rank_at(to);
    if (m.mover < 0) {
      if (log_ != nullptr) note_message(from, to, m);
      if (from != to) r.note_received(m.bytes);
      if (strangers_ != nullptr && strangers_->come()) return deliver_strange(from, to, m.bytes);
      r.pages->receive(from, m.bytes);
      return;
    }
    thread& t = threads_[static_cast<std::size_t>(m.mover)];
    note("thread ", t.number, " arrives on rank ", to);
    t.now = thread::state::runs;
  }
  void deliver_strange(int from, int to, std::vector<std::byte> bytes) {
    strangers& s = *strangers_;
    if (s.comes_from_elsewhere()) from = s.any_rank(p_.ranks);
    if (s.comes_from_elsewhere()) to = s.any_rank(p_.ranks);
    const bool twice = s.comes_twice();
    if (twice)
      rank_at(to).pages->receive(from, bytes);
    else
      s.change(bytes);
    ++s.messages;
    note("  changed, and to rank ", to, " from ", from);
    // As the runtime does, which refuses what is shorter.
    if (bytes.size() < sizeof(message_head)) throw refusal("a message that is too short");
    rank_at(to).pages->receive(from, bytes);
  }
  void note_message(int from, int to, const message& m) {
    const char* const names[] = {
        "lock_request",   "lock_forward",   "lock_grant",        "arrival",      "arrive_with_all",
        "departure",      "collect_wanted", "arrive_to_collect", "collect_done", "collect_go",
        "page_request",   "page_reply",     "diff_request",      "diff_reply",   "news",
        "event_question", "event_answer",   "own_request",       "own_forward",  "own_grant",
        "read_request",   "read_forward",   "read_reply",        "ask",          "allow",
        "forward_load",   "forward_store",  "invalidate",        "acknowledge",  "data",
        "confirm"};
    static_assert(std::size(names) == static_cast<std::size_t>(page_message::count_));
    message_head head;
    std::memcpy(&head, m.bytes.data(), sizeof head);
    note("rank ", to, " gets ", names[static_cast<int>(head.what)], " from ", from, ": number ",
         head.number, ", flag ", head.flag, ", epoch ", head.epoch);
    if (head.what == page_message::page_request || head.what == page_message::diff_request) {
      page_number first = 0;
      std::memcpy(&first, m.bytes.data() + sizeof head, sizeof first);
      note("  the first of them is page ", first);
    }
  }

  /// The thread has executed the instruction at which it faulted, and its rank has not noticed.
  bool is_behind(const thread& t) const {
    return t.faulted != thread::none && t.faulted != t.next && t.now != thread::state::moves;
  }
  void tell_ran(thread& t) {
    if (!is_behind(t)) return;
    t.faulted = thread::none;
    rank_of(t).pages->ran(&t);
  }

  void note_kept() {
    std::size_t all = 0;
    for (const auto& r : ranks_) all += r->kept();
    const bool is_first = threads_.front().round < p_.rounds / 2;
    std::size_t& most = is_first ? sum_.kept_first : sum_.kept_then;
    most = std::max(most, all);
  }

  /// False: the thread waits for the page.
  bool reach(thread& t, int v, bool store) {
    const auto g = static_cast<page_number>(p_.page_of(v));
    rank& r = rank_of(t);
    const access needed = store ? access::store : access::load;
    if (r.allowed[g] >= needed) return true;
    note("thread ", t.number, " on rank ", t.rank, " faults on page ", g,
         store ? " for a store" : " for a load");
    ++sum_.faults;
    t.now = thread::state::waits_for_page;
    t.page = g;
    t.needs = needed;
    const bool again = t.faulted == t.next;
    t.faulted = t.next;
    r.pages->fault(g, store, &t, again);
    return false;
  }
  /// False: the thread waits for a page.
  bool pin(thread& t, const instruction& n) {
    rank& r = rank_of(t);
    const access how = n.stores ? access::store : access::load;
    const auto first = static_cast<page_number>(p_.page_of(n.variable));
    const auto last = static_cast<page_number>(p_.page_of(n.other));
    for (page_number g; (g = first + t.pages_pinned) <= last; ++t.pages_pinned) {
      if (!r.pages->pin(g, how)) {
        note("thread ", t.number, " on rank ", t.rank, " wants to pin page ", g);
        ++sum_.faults;
        t.now = thread::state::waits_for_page;
        t.page = g;
        t.needs = r.pages->to_pin(g, how);
        const bool again = t.faulted == t.next;
        t.faulted = t.next;
        r.pages->fault(g, t.needs == access::store, &t, again);
        return false;
      }
      note("thread ", t.number, " on rank ", t.rank, " pins page ", g);
      t.pinned.push_back({g, how});
      t.faulted = thread::none;
      r.pages->ran(&t);
    }
    t.pages_pinned = 0;
    return true;
  }
  /// What the system does with pinned pages.
  void use_pinned(thread& t, int v, bool store) {
    if (rank_of(t).allowed[static_cast<page_number>(p_.page_of(v))] <
        (store ? access::store : access::load))
      throw failure("a page that thread " + std::to_string(t.number) + " has pinned is closed");
  }

  /// Variables are next to each other, and all bytes of one are the same.
  std::span<std::uint8_t> value(thread& t, int v) {
    const auto g = static_cast<page_number>(p_.page_of(v));
    const auto offset = static_cast<std::size_t>(v % p_.variables_of_page);
    auto* const page = reinterpret_cast<std::uint8_t*>(rank_of(t).bytes(g));
    return {page + 60 + offset * p_.variable_bytes, p_.variable_bytes};
  }
  void check_load(thread& t, int v) {
    const std::uint8_t right = shadow_[static_cast<std::size_t>(v)];
    const auto bytes = value(t, v);
    const auto wrong = std::find_if(bytes.begin(), bytes.end(), [&](auto b) { return b != right; });
    const std::uint8_t seen = wrong == bytes.end() ? right : *wrong;
    note("thread ", t.number, " on rank ", t.rank, " loads ", v, ": ", seen);
    if (seen != right)
      throw failure("thread " + std::to_string(t.number) + " loaded " + std::to_string(seen) +
                    " from variable " + std::to_string(v) + ", which is " + std::to_string(right));
  }

  void store(thread& t, int v, int what) {
    const auto stored = static_cast<std::uint8_t>(what);
    std::ranges::fill(value(t, v), stored);
    shadow_[static_cast<std::size_t>(v)] = stored;
    note("thread ", t.number, " on rank ", t.rank, " stores ", v, ": ", stored);
  }

  /// Asks an object's home. False: the thread waits for the last answer.
  bool has_answer(thread& t, const event_question& q) {
    if (!t.had_to_wait) ask(t, q);
    if (!is_last(t.answer)) return wait_for_answer(t);
    t.had_to_wait = false;
    t.now = thread::state::runs;
    return true;
  }
  static bool is_last(const event_answer& a) {
    return a.is != event_answer::kind::asked && a.is != event_answer::kind::waits;
  }
  void ask(thread& t, const event_question& q) {
    t.had_to_wait = true;
    t.answer = {event_answer::kind::asked};
    const event_answer a = rank_of(t).pages->ask(q, &t);
    if (t.answer.is == event_answer::kind::asked) t.answer = a;
  }
  static bool wait_for_answer(thread& t) {
    t.now = thread::state::waits_for_answer;
    return false;
  }
  void check_added(const thread& t, const instruction& n) {
    std::vector<bool>& seen = added_[n.variable];
    seen.resize(n.other);
    if (t.answer.value >= n.other || seen[t.answer.value])
      throw failure("thread " + std::to_string(t.number) + " adds to atomic " +
                    std::to_string(n.variable) + ", which was " + std::to_string(t.answer.value) +
                    " for another one, too, or is too great");
    seen[t.answer.value] = true;
  }
  /// Waits until a condition is prepared. False: not yet.
  bool has_condition(thread& t, const instruction& n) {
    using stage = thread::waiting;
    rank& r = rank_of(t);
    if (t.condition == stage::begins) {
      if (prepared_[n.variable]) return true;
      note("thread ", t.number, " listens to ", n.variable);
      t.condition = stage::asks;
      ask(t, {.what = question::listen, .object = n.variable});
    }
    if (t.condition == stage::asks) {
      if (t.answer.is == event_answer::kind::asked && holds(rule::listen_before_unlock))
        return wait_for_answer(t);
      t.condition = stage::has_unlocked;
      r.pages->release_lock(n.other, false);
    }
    if (t.condition == stage::has_unlocked) {
      if (!is_last(t.answer)) return wait_for_answer(t);
      t.had_to_wait = false;
      t.condition = stage::locks;
      t.now = thread::state::waits_for_lock;
      if (!r.pages->take_lock(n.other, &t)) return false;
      t.now = thread::state::runs;
    }
    t.condition = stage::begins;
    return has_condition(t, n);
  }
  /// What happens on a rank before a fiber that comes from `t` goes on there.
  void send_fiber(thread& t, int to, int which) {
    const auto w = static_cast<ordered_with>(chance_() % ways);
    auto& messages = way_of(w, t.rank, to);
    const auto news = rank_of(t).pages->news_for(to, w);
    if (!news.empty() && holds(rule::move_with_notices)) {
      count_message(news.size());
      messages.push_back({{news.begin(), news.end()}});
      rank_of(t).pages->news_sent(to, w);
    }
    messages.push_back({{}, which});
  }

  void execute(thread& t) {
    const instruction n = code(t)[t.next];
    const bool enters = n.what >= operation::lock && n.what != operation::pin;
    if (enters) tell_ran(t);
    rank& r = rank_of(t);
    waiter self = &t;
    switch (n.what) {
      case operation::load:
        if (!reach(t, n.variable, false)) return;
        check_load(t, n.variable);
        break;
      case operation::store:
      case operation::increment:
      case operation::flip: {
        if (!reach(t, n.variable, true)) return;
        if (n.what != operation::store) check_load(t, n.variable);
        const int old = value(t, n.variable).front();
        store(t, n.variable,
              n.what == operation::store       ? n.other
              : n.what == operation::increment ? old + 1
                                               : old ^ 1);
        break;
      }
      case operation::both:
        if (!reach(t, n.variable, true) || !reach(t, n.other, true)) return;
        for (int v : {n.variable, n.other}) {
          check_load(t, v);
          store(t, v, value(t, v).front() + 1);
        }
        break;
      case operation::copy:
        if (!reach(t, n.variable, false) || !reach(t, n.other, true)) return;
        check_load(t, n.variable);
        store(t, n.other, value(t, n.variable).front());
        break;
      case operation::system_load:
        use_pinned(t, n.variable, false);
        check_load(t, n.variable);
        break;
      case operation::system_store:
        use_pinned(t, n.variable, true);
        store(t, n.variable, n.other);
        break;
      case operation::pin:
        if (!pin(t, n)) return;
        break;
      case operation::unpin:
        for (const thread::pin& p : std::exchange(t.pinned, {})) r.pages->unpin(p.page, p.how);
        break;
      case operation::lock:
        if (!t.had_to_wait) {
          t.had_to_wait = true;
          t.now = thread::state::waits_for_lock;
          if (!r.pages->take_lock(n.variable, self)) return;
          t.now = thread::state::runs;
        }
        t.had_to_wait = false;
        if (r.pages->lock_holder(n.variable) != self)
          throw failure("a lock was handed to another thread");
        note("thread ", t.number, " on rank ", t.rank, " locks ", n.variable);
        break;
      case operation::unlock:
        ++t.next;
        note("thread ", t.number, " on rank ", t.rank, " unlocks ", n.variable);
        r.pages->release_lock(n.variable, p_.fair && chance_() % 2 == 0);
        return;
      case operation::barrier:
        if (!t.had_to_wait) {
          t.had_to_wait = true;
          t.now = thread::state::waits_at_barrier;
          r.pages->arrive(t.rank != p_.threads[static_cast<std::size_t>(t.number)].rank);
          return;
        }
        t.had_to_wait = false;
        break;
      case operation::move: {
        ++t.next;
        if (n.variable == t.rank) return;
        note("thread ", t.number, " leaves rank ", t.rank, " for ", n.variable);
        // Its own past must be visible where it goes on.
        send_fiber(t, n.variable, t.number);
        t.now = thread::state::moves;
        t.rank = n.variable;
        r.pages->fiber_went();
        return;
      }
      case operation::set:
      case operation::clear:
        if (!has_answer(t, {.what = question::store,
                            .object = n.variable,
                            .first = n.what == operation::set ? 1u : 0u}))
          return;
        note("thread ", t.number, n.what == operation::set ? " has set " : " has cleared ",
             n.variable);
        break;
      case operation::await:
        if (!has_answer(t, {.what = question::await, .object = n.variable})) return;
        note("thread ", t.number, " has seen ", n.variable);
        break;
      case operation::add:
        if (!has_answer(t, {.what = question::add, .object = n.variable, .first = 1})) return;
        note("thread ", t.number, " adds to ", n.variable, ", which was ", t.answer.value);
        check_added(t, n);
        if (t.answer.value + 1 != n.other) t.next += n.skips;
        break;
      case operation::take:
        if (!has_answer(t, {.what = question::exchange, .object = n.variable, .bytes = 4})) return;
        if (t.answer.value != n.other) throw failure("an atomic is not the sum of what was added");
        added_[n.variable].clear();
        break;
      case operation::arrive:
        if (!has_answer(t, {.what = question::arrive, .object = n.variable, .first = n.other}))
          return;
        note("thread ", t.number, " has met at ", n.variable);
        break;
      case operation::prepare:
        prepared_[n.variable] = true;
        break;
      case operation::notify_one:
      case operation::notify_all:
        if (!has_answer(t, {.what = n.what == operation::notify_one ? question::notify_one
                                                                    : question::notify_all,
                            .object = n.variable}))
          return;
        break;
      case operation::wait:
        if (!has_condition(t, n)) return;
        if (r.pages->lock_holder(n.other) != self)
          throw failure("a thread goes on without the lock");
        break;
      case operation::create: {
        const event_question joins{.what = question::join, .first = 1};
        if (!holds(rule::join_before_arrival))
          r.pages->ask(joins, nullptr);
        else if (!has_answer(t, joins))
          return;
        thread& made = threads_[n.variable];
        note("thread ", t.number, " creates thread ", made.number, " on rank ", made.rank);
        if (made.rank == t.rank)
          made.now = thread::state::runs;
        else
          send_fiber(t, made.rank, made.number);
        break;
      }
      case operation::here:
        r.pages->fiber_came();
        break;
      case operation::gone:
        if (!t.had_to_wait) r.pages->fiber_went();
        if (!has_answer(t, {.what = question::leave})) return;
        note("thread ", t.number, " is gone");
        break;
    }
    ++t.next;
  }

  const program& p_;
  std::mt19937_64 chance_;
  const preference first_;
  int last_ = -1;  ///< The thread that came last in turn.
  totals& sum_;
  std::string* log_;
  strangers* strangers_;
  std::vector<std::vector<bool>> added_;  ///< Which values were seen when 1 was added, by object.
  std::vector<bool> prepared_;            ///< By condition.
  std::vector<std::uint8_t> shadow_;      ///< What a sequentially consistent memory would hold.
  std::vector<thread> threads_;
  std::vector<std::unique_ptr<rank>> ranks_;
  std::vector<std::deque<message>> ways_;
};

rank::rank(job& j, int my_rank) : me(my_rank), job_(j) {
  const program& p = j.prog();
  const auto count = static_cast<std::size_t>(p.pages);
  memory_.resize(count * page_bytes);
  allowed.resize(count, access::none);
  table.resize(count);
  rank_pages_settings s;
  s.protocol = {p.exclusive, p.sticking, p.whole_pages, p.claims,
                static_cast<std::uint32_t>(p.fetched_together)};
  s.collect_bytes = j.collect_bytes();
  s.fan_out = p.fan_out;
  s.counts = &counts;
  if (p.report) {
    report = std::make_unique<page_report>(p.ranks, &counted_);
    s.report = report.get();
    s.protocol.exclusive = s.protocol.whole_pages = s.protocol.claims = false;
  }
  std::pmr::vector<page_layout::part> parts;  // a page each
  for (int page = 0; page < p.pages; ++page)
    parts.push_back({static_cast<std::uint16_t>(page % p.ranks), p.protocol_of(page)});
  pages =
      std::make_unique<rank_pages>(*this, page_layout(1, std::move(parts)), me, p.ranks, table, s);
}

void rank::send(int to, std::span<const std::byte> front, std::span<const std::byte> back) {
  message m;
  m.bytes.assign(front.begin(), front.end());
  m.bytes.insert(m.bytes.end(), back.begin(), back.end());
  job_.count_message(m.bytes.size());
  job_.way_of(ordered_with::replies, me, to).push_back(std::move(m));
}

void rank::wake_page(page_number page, access may) {
  for (thread& t : job_.threads())
    if (t.rank == me && t.now == thread::state::waits_for_page && t.page == page && t.needs <= may)
      t.now = thread::state::runs;
}
void rank::wake_locker(waiter fiber) { static_cast<thread*>(fiber)->now = thread::state::runs; }
void rank::wake_barrier() {
  for (thread& t : job_.threads())
    if (t.rank == me && t.now == thread::state::waits_at_barrier) t.now = thread::state::runs;
}
void rank::answered(waiter fiber, const event_answer& a) {
  if (fiber == nullptr) return;
  auto* const t = static_cast<thread*>(fiber);
  t->answer = a;
  if (t->now == thread::state::waits_for_answer) t->now = thread::state::runs;
}
int rank::home_of(std::uint64_t object) {
  return static_cast<int>(object % static_cast<unsigned>(job_.prog().ranks));
}
std::uint32_t rank::fetched_together(page_number) {
  return static_cast<std::uint32_t>(job_.prog().fetched_together);
}

}  // namespace

bool run_with(strangers& s, const program& p, std::uint64_t order, totals& sum, std::string* log) {
  ++sum.programs;
  try {
    job(p, order, sum, log, &s).run();
  } catch (const refusal&) {
    return true;
  } catch (const lasting_failure&) {
    throw;
  } catch (const failure&) {
  }
  return false;
}

std::string run(const program& p, std::uint64_t order, totals& sum, std::string* log) {
  ++sum.programs;
  try {
    job(p, order, sum, log).run();
  } catch (const failure& f) {
    return f.what();
  }
  return "";
}

}  // namespace simulated
