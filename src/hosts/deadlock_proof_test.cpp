// SPDX-License-Identifier: Apache-2.0
// The proof against a model of a job: ranks that sleep, wake by messages and send, messages between
// hosts that are on their way for any time, and agents whose words reach the head late.
#include "hosts/deadlock_proof.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <numeric>
#include <random>

using namespace sojourn::detail;

namespace {

using rest = watch_area::rest;

TEST(a_deadlock, is_proven_when_all_hosts_rest_and_are_asked_once_more) {
  deadlock_proof proof(2);
  EXPECT_EQ(proof.hear(0, 0, rest{4, 10, 7}).question, 0u);
  const std::uint64_t question = proof.hear(1, 0, rest{6, 5, 8}).question;
  ASSERT_NE(question, 0u);
  EXPECT_FALSE(proof.hear(1, question, rest{6, 5, 8}).is_proven);
  EXPECT_TRUE(proof.hear(0, question, rest{4, 10, 7}).is_proven);
}

TEST(a_deadlock, is_not_proven_while_a_message_is_on_its_way) {
  deadlock_proof proof(2);
  proof.hear(0, 0, rest{1, 3, 0});
  EXPECT_EQ(proof.hear(1, 0, rest{1, 0, 2}).question, 0u);
  EXPECT_NE(proof.hear(1, 0, rest{3, 0, 3}).question, 0u) << "it has come";
}

TEST(a_deadlock, is_not_proven_when_a_host_has_woken_in_between) {
  deadlock_proof proof(2);
  proof.hear(0, 0, rest{1, 1, 1});
  const std::uint64_t question = proof.hear(1, 0, rest{1, 1, 1}).question;
  EXPECT_EQ(proof.hear(0, question, std::nullopt).question, 0u);
  EXPECT_FALSE(proof.hear(1, question, rest{1, 1, 1}).is_proven) << "the question is void";
  const std::uint64_t again = proof.hear(0, 0, rest{3, 2, 2}).question;
  ASSERT_NE(again, question);
  const std::uint64_t third = proof.hear(0, again, rest{5, 2, 2}).question;
  EXPECT_NE(third, again) << "it rests, and has woken since";
  EXPECT_FALSE(proof.hear(1, again, rest{1, 1, 1}).is_proven);
}

/// A job of some hosts. A rank that is awake may send or fall asleep; a message wakes the rank that
/// it reaches. Agents look at their hosts at any time, and their words arrive in order, but late.
class model {
 public:
  model(std::size_t hosts, std::uint64_t seed) : random_(seed), proof_(hosts), hosts_(hosts) {
    for (host& h : hosts_) h.ranks.resize(1 + any(2));
  }

  enum class result { proven, wrong, alive };
  result run(int steps) {
    for (int i = 0; i < steps; ++i) {
      host& h = hosts_[any(hosts_.size())];
      const auto which = static_cast<std::size_t>(&h - hosts_.data());
      switch (any(7)) {
        case 0:
        case 1:
          go_on(h);
          break;
        case 2:
          arrive();
          break;
        case 3:  // its agent looks
          say(which, 0);
          break;
        case 4:  // its agent hears a question
          if (h.questions.empty()) break;
          say(which, h.questions.front());
          h.questions.pop_front();
          break;
        default:
          if (h.words.empty()) break;
          if (hear(which)) return is_dead() ? result::proven : result::wrong;
      }
    }
    return result::alive;
  }

 private:
  struct rank {
    bool is_awake = true;
    std::uint64_t epoch = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  struct word {
    std::uint64_t question;
    std::optional<rest> said;
  };
  struct host {
    std::vector<rank> ranks;
    std::optional<rest> told;
    std::deque<word> words;               ///< To the head.
    std::deque<std::uint64_t> questions;  ///< From the head.
  };

  std::size_t any(std::size_t n) { return random_() % n; }
  rank& some_rank() {
    auto& ranks = hosts_[any(hosts_.size())].ranks;
    return ranks[any(ranks.size())];
  }

  void go_on(host& h) {
    rank& r = h.ranks[any(h.ranks.size())];
    if (!r.is_awake) return;
    if (any(5) < 2) {
      ++r.sent;
      on_their_way_.push_back(&some_rank());
    } else {
      r.is_awake = false;
      ++r.epoch;
    }
  }

  void arrive() {
    if (on_their_way_.empty()) return;
    const auto at = on_their_way_.begin() + static_cast<std::ptrdiff_t>(any(on_their_way_.size()));
    rank& r = **at;
    on_their_way_.erase(at);
    if (!r.is_awake) ++r.epoch;
    r.is_awake = true;
    ++r.received;
  }

  void say(std::size_t which, std::uint64_t question) {
    std::optional<rest> now = rest{};
    for (const rank& r : hosts_[which].ranks) {
      if (r.is_awake) now.reset();
      if (!now) break;
      now->epochs += r.epoch;
      now->sent += r.sent;
      now->received += r.received;
    }
    // By itself an agent says that its host rests, and nothing else, and the same once.
    host& h = hosts_[which];
    if (question == 0 && (!now || now == h.told)) return;
    if (question == 0) h.told = now;
    h.words.push_back({question, now});
  }

  /// True when the head takes the deadlock for proven.
  bool hear(std::size_t which) {
    const word w = hosts_[which].words.front();
    hosts_[which].words.pop_front();
    const auto outcome = proof_.hear(which, w.question, w.said);
    if (outcome.question != 0) {
      for (host& h : hosts_) h.questions.push_back(outcome.question);
    }
    return outcome.is_proven;
  }

  bool is_dead() const {
    if (!on_their_way_.empty()) return false;
    for (const host& h : hosts_) {
      for (const rank& r : h.ranks) {
        if (r.is_awake) return false;
      }
    }
    return true;
  }

  std::mt19937_64 random_;
  deadlock_proof proof_;
  std::vector<host> hosts_;
  std::vector<rank*> on_their_way_;
};

TEST(a_deadlock, is_proven_of_dead_jobs_and_of_no_other) {
  const char* seed = std::getenv("SOJOURN_TEST_SEED");
  const std::uint64_t first = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
  int proven = 0;
  int alive = 0;
  for (std::uint64_t i = 0; i < 40'000; ++i) {
    model job(2 + i % 3, first * 1'000'003 + i);
    const model::result r = job.run(1000);
    ASSERT_NE(r, model::result::wrong) << "program " << i << " of seed " << first;
    ++(r == model::result::proven ? proven : alive);
  }
  EXPECT_GT(proven, 20'000) << alive << " went on";
}

}  // namespace
