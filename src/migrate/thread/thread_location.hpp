// SPDX-License-Identifier: Apache-2.0
// Where the base of a thread is, as its home knows it, and what ranks do with requests for a base
// that they do not have. Here are the decisions alone: nothing here sends a message or looks into a
// table, so that a test can put them through any order of events. thread_home.cpp and
// thread_asks.cpp act upon them.
//
//   rank that asks ──▶ rank where it last found the base ──▶ home ──▶ rank where the base should be
//                                                             ▲                │ it is not there:
//                                                             the │                │ request is
//                                                             kept ├── question ────┘ │ └── the
//                                                             request again, where home
//                                                                 answers that the base is not on
//                                                                 its way there (stale)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// Where home believes a base to be, or to be going; also the message that tells home.
struct thread_location {
  int at;
  std::uint32_t moves;  ///< How often the base had moved when it came to `at`, or set out for it.

  /// Takes in the report of the rank that the base left. Such a report may come late, when home
  /// knows of later moves already.
  void told(const thread_location& news) {
    if (news.moves > moves) *this = news;
  }
};

/// What home knows of a thread. `none`: it was joined, has ended after detach(), or never existed.
struct known_thread {
  enum : std::uint8_t { none, lives, ended } is = none;
  thread_location location{-1, 0};
};

/// What home does with a request for a base that it does not have.
enum class step_at_home : std::uint8_t {
  is_unknown,  ///< Answers that there is no such thread …
  has_ended,   ///< … or that it has ended.
  keeps,       ///< Keeps the request: the thread has not started here, or the bytes of its base are
               ///< coming.
  passes_on    ///< Passes the request on to the rank where the base should be.
};
inline step_at_home home_decides(const known_thread& known, int me) {
  if (known.is == known_thread::none) return step_at_home::is_unknown;
  if (known.is == known_thread::ended) return step_at_home::has_ended;
  return known.location.at == me ? step_at_home::keeps : step_at_home::passes_on;
}

/// What a rank does with a request for a base that it does not have. True: it passes the request to
/// home (or, if it is the home, acts as such). False: it keeps the request, and asks home a
/// question. `by_hint`: home has not seen the request yet.
inline bool asks_home(bool by_hint, bool is_home) { return by_hint || is_home; }

/// The question whether a base is on its way to the rank that asks. It is asked when home has sent
/// a request to that rank.
struct location_question {
  ticket_id thread;
  std::uint32_t homecomings;  ///< How many bases the asking rank has ever sent to this home.
};
/// The answer to that question. It is right only when the question is not early: when everything
/// has arrived that the asking rank had told home before.
inline bool is_on_its_way(const known_thread& known, int asker) {
  return known.is == known_thread::lives && known.location.at == asker;
}

/// Counts the bases that go home. No separate message reports that such a base has left its rank:
/// its arrival at home does. But the base may arrive after a question which that rank asked later,
/// because bases and questions are messages of different classes. By the counts home knows whether
/// it must wait for a base before it answers.
class homecomings {
 public:
  /// `sent` and `come` have a number for each rank, which is 0 or restored from a checkpoint.
  void attach(std::span<std::uint32_t> sent, std::span<std::uint32_t> come) {
    sent_ = sent;
    come_ = come;
  }

  /// A base leaves this rank for its home.
  void base_goes(int home) { ++sent_[static_cast<std::size_t>(home)]; }
  std::uint32_t sent_to(int home) const { return sent_[static_cast<std::size_t>(home)]; }

  /// A question has come from rank `from`. If it is early, keeps it and returns true. It is early
  /// while not all bases are here that the rank had sent home before. (Bases sent after the
  /// question may be here.)
  bool keep_if_early(const location_question& q, int from) {
    if (!is_early(q, from)) return false;
    kept_.push_back({q, from});
    return true;
  }
  /// A base has come home from `from`. Calls answer(question, from) with each kept question that is
  /// no longer early.
  template <class Answer>
  void base_comes(int from, Answer answer) {
    ++come_[static_cast<std::size_t>(from)];
    if (kept_.empty()) [[likely]]
      return;
    auto due = [&](const kept_question& q) { return q.from == from && !is_early(q.asked, from); };
    for (const kept_question& q : kept_) {
      if (due(q)) answer(q.asked, q.from);
    }
    std::erase_if(kept_, due);
  }
  bool keeps_questions() const { return !kept_.empty(); }

 private:
  struct kept_question {
    location_question asked;
    int from;
  };
  bool is_early(const location_question& q, int from) const {
    return static_cast<std::int32_t>(q.homecomings - come_[static_cast<std::size_t>(from)]) > 0;
  }

  std::span<std::uint32_t> sent_;
  std::span<std::uint32_t> come_;
  std::vector<kept_question> kept_;
};

}  // namespace sojourn::detail
