// SPDX-License-Identifier: Apache-2.0
// A small job whose ranks run the protocol of src/object/coherence itself, with fibers that call
// methods of a few objects, and everything that may happen next in it. A method that suspends has
// two sections, others have one.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "object/coherence/entry.hpp"
#include "object/coherence/message.hpp"
#include "object/coherence/rank_objects.hpp"
#include "object/coherence/rules.hpp"
#include "objects/explore.hpp"

namespace models::objects {

using namespace sojourn::detail::coherence;

/// What a fiber does to an object.
enum class operation : std::uint8_t {
  read_copy,  ///< A const method, on a copy.
  read_copy_suspends,
  write_take,  ///< A method that is not const; the object comes here.
  write_take_suspends,
  read_take,
  read_run,  ///< Run where the object is.
  read_run_suspends,
  write_run,
  write_run_suspends,
  destroy,
  count_
};
constexpr unsigned bit(operation o) { return 1u << static_cast<unsigned>(o); }

struct fiber_plan {
  int rank;
  int operations;
  unsigned kinds;  ///< Bits of operations.
  bool is_endless = false;
};
struct configuration {
  std::string name;
  int ranks = 2;
  int objects = 1;  ///< Object o is made on rank o.
  std::vector<fiber_plan> fibers;
  int evictions = 0;
  int returns = 0;             ///< How often an owner asks home to take an object back.
  bool waits = false;          ///< A suspended method goes on when another call has written.
  bool notes_changes = false;  ///< Writes where the object is are noted first (begin_here).
  bool one_class = false;      ///< Requests and replies keep their order, too.
  int may_end = nobody;        ///< This rank may end, at any time.
  bool has_versions = true;    ///< False for runs without end.
};

struct envelope {
  message m;
  std::uint8_t version;
};

enum class phase : std::uint8_t {
  idle,
  waits,
  told,        ///< Woken to begin on what is here.
  told_again,  ///< Woken to make the call again.
  in_object,   ///< Suspended in a method on the object, at `where`.
  in_copy,     ///< Suspended in a method on a copy.
  refreshes,
  told_refreshed
};

struct fiber {
  int rank = 0;
  int left = 0;
  int made = 0;  ///< Calls so far, which gives each a name of its own.
  operation does{};
  std::uint8_t object = 0;
  phase is = phase::idle;
  int where = nobody;
  bool wrote_since = false;
  bool has_given_up = false;
  bool is_noted = false;  ///< It waits to write where the object is, which does not leave.
};

struct held_bytes {
  std::uint8_t object = 0;  ///< The version of the object, if this rank has it.
  std::uint8_t copy = 0;
};

struct job_state {
  std::vector<known_objects> ranks;
  std::vector<std::vector<held_bytes>> bytes;  ///< [rank][object]
  std::vector<std::deque<envelope>> channels;  ///< [class][from][to]
  std::vector<fiber> fibers;
  std::vector<std::uint8_t> latest;  ///< [object]
  std::vector<std::uint8_t> go_on;   ///< [rank][object]: it was asked for
  int evictions = 0;
  int returns = 0;
  int ended = nobody;
  unsigned noticed = 0;
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
  bool is_waiting(const State& s) const;
  std::string explain(const State& s) const { return s.what; }
  std::string show(const State& s) const;
  std::string name(std::uint32_t label) const;

 private:
  configuration c_;
};

}  // namespace models::objects
