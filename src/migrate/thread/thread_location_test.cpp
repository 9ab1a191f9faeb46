// SPDX-License-Identifier: Apache-2.0
// Some ranks, in one process: threads go from rank to rank, requests look for them, and what is
// sent arrives in any order that the queues between ranks permit.
#include "migrate/thread/thread_location.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace {

using namespace sojourn::detail;

constexpr int rank_total = 4;
constexpr int thread_total = 3;

struct ask {
  int number;
  int thread;
  int to;
  bool by_hint;
};

struct message {
  enum { ask_moves, moved, query, stale, outcome, joined } kind;
  int thread = 0;
  ask request{};
  thread_location news{};
  location_question question{};
};

struct base {
  int thread;
  std::uint32_t moves;
};

struct rank {
  rank() : sent(rank_total), come(rank_total) { counted.attach(sent, come); }

  std::vector<std::uint32_t> sent;
  std::vector<std::uint32_t> come;
  homecomings counted;
  std::map<int, std::uint32_t> here;  // thread, and how often it has moved
  std::multimap<int, ask> kept;
  std::vector<std::pair<base, int>> announced;  // and where they come from
};

/// Messages and bases have queues of their own: each keeps its order, but they overtake each other.
struct way {
  std::deque<message> messages;
  std::deque<base> bases;
};

class world {
 public:
  explicit world(unsigned seed) : random_(seed) {
    for (int t = 0; t < thread_total; ++t) {
      const int first = any_rank();
      known_[t] = {known_thread::lives, {first, 0}};
      ranks_[first].here[t] = 0;
    }
  }

  /// One event, chosen at random; with `quiet`, none that begins something.
  bool step(bool quiet) {
    const int choice = quiet ? 99 : static_cast<int>(random_() % 100);
    if (choice < 15) {
      move_one();
    } else if (choice < 30) {
      make_request();
    } else if (choice < 31) {
      end_one();
    } else {
      return arrive_one();
    }
    return true;
  }

  int asked() const { return asked_; }
  const std::set<int>& answered() const { return answered_; }

  /// To be called once nothing is on its way any more.
  void expect_that_all_is_known() const {
    EXPECT_EQ(static_cast<int>(answered_.size()), asked_);
    for (int r = 0; r < rank_total; ++r) {
      EXPECT_TRUE(ranks_[r].kept.empty()) << "rank " << r;
      EXPECT_FALSE(ranks_[r].counted.keeps_questions()) << "rank " << r;
      for (const auto& [t, moves] : ranks_[r].here) {
        EXPECT_EQ(known_[t].is, known_thread::lives);
        EXPECT_EQ(known_[t].location.at, r) << "thread " << t;
        EXPECT_EQ(known_[t].location.moves, moves) << "thread " << t;
      }
    }
  }

 private:
  static int home_of(int thread) { return thread % rank_total; }
  int any_rank() { return static_cast<int>(random_() % rank_total); }
  rank& of(int r) { return ranks_[r]; }

  void send(int from, int to, message m) { ways_[from][to].messages.push_back(m); }

  void send_home(int from, int thread, message m) {
    m.thread = thread;
    if (home_of(thread) == from) return receive(from, from, m);
    send(from, home_of(thread), m);
  }

  // What threads.cpp, thread_home.cpp and thread_asks.cpp do, without stacks.

  void departs(int from, int thread, int to) {
    const std::uint32_t moves = ++of(from).here[thread];
    of(from).here.erase(thread);
    const int home = home_of(thread);
    if (home == from) {
      known_[thread].location = {to, moves};
    } else if (to == home) {
      of(from).counted.base_goes(home);
    } else {
      send_home(from, thread, {.kind = message::moved, .news = {to, moves}});
    }
    ways_[from][to].bases.push_back({thread, moves});
  }

  void announce(int at, const base& b, int from) {
    if (home_of(b.thread) != at) return;
    known_[b.thread].location = {at, b.moves};
    of(at).counted.base_comes(
        from, [&](const location_question& q, int asker) { answer_question(at, q, asker); });
  }

  void arrives(int at, const base& b) {
    of(at).here[b.thread] = b.moves;
    handle_kept(at, b.thread);
  }

  void answer_question(int home, const location_question& q, int asker) {
    const int t = static_cast<int>(q.thread);
    if (!is_on_its_way(known_[t], asker)) {
      send(home, asker, {.kind = message::stale, .thread = t});
    }
  }

  std::vector<ask> take_kept(int at, int thread) {
    std::vector<ask> asks;
    auto [first, last] = of(at).kept.equal_range(thread);
    for (auto a = first; a != last; ++a) asks.push_back(a->second);
    of(at).kept.erase(first, last);
    return asks;
  }
  void handle_kept(int at, int thread) {
    for (const ask& a : take_kept(at, thread)) handle(at, a);
  }

  void answer(const ask& a) {
    EXPECT_TRUE(answered_.insert(a.number).second) << "request " << a.number << ", twice";
  }

  void handle(int at, const ask& a) {
    if (of(at).here.contains(a.thread)) {
      answer(a);
      if (a.to == at) return;
      departs(at, a.thread, a.to);
      return handle_kept(at, a.thread);
    }
    if (asks_home(a.by_hint, home_of(a.thread) == at)) return ask_home(at, a);
    of(at).kept.emplace(a.thread, a);
    const int home = home_of(a.thread);
    send(at, home,
         {.kind = message::query,
          .question = {static_cast<ticket_id>(a.thread), of(at).counted.sent_to(home)}});
  }

  void ask_home(int at, ask a) {
    a.by_hint = false;
    const int home = home_of(a.thread);
    if (home != at) return send(at, home, {.kind = message::ask_moves, .request = a});
    switch (home_decides(known_[a.thread], at)) {
      case step_at_home::is_unknown:
        EXPECT_TRUE(gone_.contains(a.thread));
        return answer(a);
      case step_at_home::has_ended:
        EXPECT_TRUE(gone_.contains(a.thread));
        return answer(a);
      case step_at_home::keeps:
        of(at).kept.emplace(a.thread, a);
        return;
      case step_at_home::passes_on:
        send(at, known_[a.thread].location.at, {.kind = message::ask_moves, .request = a});
    }
  }

  void receive(int at, int from, const message& m) {
    switch (m.kind) {
      case message::ask_moves:
        return handle(at, m.request);
      case message::moved:
        if (known_[m.thread].is != known_thread::none) known_[m.thread].location.told(m.news);
        return;
      case message::query:
        if (!of(at).counted.keep_if_early(m.question, from)) answer_question(at, m.question, from);
        return;
      case message::stale:
        for (const ask& a : take_kept(at, m.thread)) ask_home(at, a);
        return;
      case message::outcome:
        known_[m.thread].is = known_thread::ended;
        return;
      case message::joined:
        known_[m.thread].is = known_thread::none;
    }
  }

  // The events.

  /// A thread whose base is on some rank, and that rank; -1 if there is none.
  std::pair<int, int> any_base() {
    std::vector<std::pair<int, int>> all;
    for (int r = 0; r < rank_total; ++r) {
      for (const auto& [t, moves] : of(r).here) all.emplace_back(t, r);
    }
    return all.empty() ? std::pair(-1, 0) : all[random_() % all.size()];
  }

  void move_one() {
    const auto [thread, at] = any_base();
    const int to = any_rank();
    if (thread < 0 || to == at) return;
    departs(at, thread, to);
    for (const ask& a : take_kept(at, thread)) answer(a);
  }

  void make_request() {
    const int at = any_rank();
    ask a{asked_++, static_cast<int>(random_() % thread_total), any_rank(), random_() % 2 == 0};
    if (!a.by_hint || of(at).here.contains(a.thread)) {
      a.by_hint = false;
      return of(at).here.contains(a.thread) ? handle(at, a) : ask_home(at, a);
    }
    const int hint = any_rank();
    if (hint == at) return ask_home(at, a);
    send(at, hint, {.kind = message::ask_moves, .request = a});
  }

  void end_one() {
    const auto [thread, at] = any_base();
    if (thread < 0) return;
    gone_.insert(thread);
    of(at).here.erase(thread);
    send_home(at, thread, {.kind = message::outcome});
    if (random_() % 2 == 0) send_home(at, thread, {.kind = message::joined});
    for (const ask& a : take_kept(at, thread)) ask_home(at, a);
  }

  /// Lets the first message or base of a queue arrive, or completes a base that was announced.
  /// False when there is nothing.
  bool arrive_one() {
    struct coming {
      int from, to;
      enum { message, base, announced } what;
    };
    std::vector<coming> all;
    for (int from = 0; from < rank_total; ++from) {
      for (int to = 0; to < rank_total; ++to) {
        if (!ways_[from][to].messages.empty()) all.push_back({from, to, coming::message});
        if (!ways_[from][to].bases.empty()) all.push_back({from, to, coming::base});
      }
      if (!of(from).announced.empty()) all.push_back({from, from, coming::announced});
    }
    if (all.empty()) return false;
    const coming c = all[random_() % all.size()];
    way& w = ways_[c.from][c.to];
    if (c.what == coming::message) {
      const message m = w.messages.front();
      w.messages.pop_front();
      receive(c.to, c.from, m);
    } else if (c.what == coming::base) {
      const base b = w.bases.front();
      w.bases.pop_front();
      announce(c.to, b, c.from);
      // Its bytes come in parts, or are here.
      if (random_() % 2 == 0) {
        of(c.to).announced.push_back({b, c.from});
      } else {
        arrives(c.to, b);
      }
    } else {
      const auto [b, from] = of(c.to).announced.back();
      of(c.to).announced.pop_back();
      arrives(c.to, b);
    }
    return true;
  }

  std::mt19937 random_;
  rank ranks_[rank_total];
  way ways_[rank_total][rank_total];
  known_thread known_[thread_total];
  int asked_ = 0;
  std::set<int> answered_;
  std::set<int> gone_;
};

TEST(thread_location, every_request_is_answered_and_home_knows_where_the_thread_is) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    world w(seed);
    for (int i = 0; i < 300; ++i) w.step(false);
    int left = 100'000;
    while (w.step(true)) ASSERT_GT(--left, 0) << "requests go round for ever";
    w.expect_that_all_is_known();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(thread_location, late_news_is_no_news) {
  thread_location known{3, 7};
  known.told({1, 6});
  EXPECT_EQ(known.at, 3);
  known.told({2, 8});
  EXPECT_EQ(known.at, 2);
}

TEST(thread_location, a_question_waits_for_the_bases_that_were_sent_before_it) {
  std::vector<std::uint32_t> sent(2), come(2);
  homecomings counted;
  counted.attach(sent, come);
  EXPECT_TRUE(counted.keep_if_early({5, 1}, 1));
  EXPECT_FALSE(counted.keep_if_early({6, 0}, 1));
  std::vector<ticket_id> answered;
  const auto answer = [&](const location_question& q, int) { answered.push_back(q.thread); };
  counted.base_comes(0, answer);  // of another rank
  EXPECT_TRUE(answered.empty());
  counted.base_comes(1, answer);
  EXPECT_EQ(answered, std::vector<ticket_id>{5});
  EXPECT_FALSE(counted.keeps_questions());
  // Counts may begin again at 0.
  come[1] = ~std::uint32_t{0};
  EXPECT_TRUE(counted.keep_if_early({7, 0}, 1));
}

}  // namespace
