// SPDX-License-Identifier: Apache-2.0
// A small job whose ranks run the protocol of src/object/replicas itself, with fibers that read,
// update and refresh one replicated object, whose writer is rank 0, and everything that may happen
// next in it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "object/replicas/message.hpp"
#include "object/replicas/reader.hpp"
#include "object/replicas/rules.hpp"
#include "object/replicas/state.hpp"
#include "object/replicas/writer.hpp"
#include "objects/explore.hpp"

namespace models::replicated {

using namespace sojourn::detail::replicas;

inline constexpr int nobody = -1;
inline constexpr int no_bound = -1;

enum class operation : std::uint8_t { read, update, refresh, destroy, count_ };
constexpr unsigned bit(operation o) { return 1u << static_cast<unsigned>(o); }

struct fiber_plan {
  int rank;
  int operations;
  unsigned kinds;  ///< Bits of operations.
};
struct configuration {
  std::string name;
  int ranks = 2;
  std::vector<fiber_plan> fibers;
  int drops = 0;         ///< How often ranks drop the version that they have.
  int bound = no_bound;  ///< Of all updates: how many versions a reader may be behind them.
  int may_end = nobody;  ///< This rank may end, at any time.
};

/// What goes from one rank to another: a message of the protocol, or an update and its answer,
/// which the runtime carries.
struct envelope {
  enum class form : std::uint8_t { protocol, update, updated, destroy };
  form is = form::protocol;
  message m;
  int fiber = 0;
  version number = 0;
};
/// Requests and replies pass each other.
inline bool is_reply(const envelope& e) {
  return e.is == envelope::form::updated ||
         (e.is == envelope::form::protocol && is_reply(e.m.what));
}

enum class phase : std::uint8_t {
  idle,
  waits,    ///< For an answer, or to be woken.
  updates,  ///< Its update has been sent, or waits at the writer.
  told,     ///< It goes on when its turn comes.
  sees      ///< The same, with an update that its rank is to see.
};

struct fiber {
  int rank = 0;
  int left = 0;
  int made = 0;  ///< Calls so far, which gives each a name of its own.
  operation does{};
  phase is = phase::idle;
  version number = 0;  ///< Of refresh: there was this version when it began. Of update: its own.
};

struct job_state {
  writer_state writer;
  std::vector<reader_state> readers;  ///< [rank]; that of rank 0 is not used.
  std::vector<version> seen;          ///< [rank]: the newest that a call there has read or made.
  std::vector<std::deque<envelope>> channels;  ///< [class][from][to]
  std::vector<fiber> fibers;
  version finished = 0;  ///< The newest version whose update was answered.
  int drops = 0;
  int ended = nobody;
  unsigned noticed = 0;  ///< Bits of the ranks that know of the end.
  int error = 0;
  const char* what = "";
};

class job {
 public:
  using State = job_state;
  explicit job(configuration c) : c_(std::move(c)) {}

  State initial() const;
  void successors(const State& s, std::vector<explore::successor<job>>& out) const;
  explore::fingerprint fingerprint_of(const State& s) const;
  bool is_final(const State& s) const;
  std::string explain(const State& s) const { return s.what; }
  std::string show(const State& s) const;
  std::string name(std::uint32_t label) const;

 private:
  configuration c_;
};

}  // namespace models::replicated
