// SPDX-License-Identifier: Apache-2.0
#include "objects/job.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

namespace models::objects {

namespace {

const char* const operation_names[] = {
    "read/cache", "read/cache, suspends", "write/take", "write/take, suspends", "read/take",
    "read/run",   "read/run, suspends",   "write/run",  "write/run, suspends",  "destroy"};
const char* const kind_names[] = {
    "run",  "copy",  "refresh", "take",  "hand",  "invalidate", "give",         "destroy", "kill",
    "lost", "query", "result",  "grant", "bytes", "object",     "acknowledged", "moved",   "have"};
const char* const phase_names[] = {"idle",
                                   "waits",
                                   "told to begin",
                                   "told to repeat",
                                   "suspended in the object",
                                   "suspended in a copy",
                                   "refreshes",
                                   "told that it is refreshed"};

constexpr bool writes(operation o) {
  return o == operation::write_take || o == operation::write_take_suspends ||
         o == operation::write_run || o == operation::write_run_suspends;
}
constexpr bool suspends(operation o) {
  return o == operation::read_copy_suspends || o == operation::write_take_suspends ||
         o == operation::read_run_suspends || o == operation::write_run_suspends;
}
constexpr ask asks(operation o) {
  switch (o) {
    case operation::read_copy:
    case operation::read_copy_suspends:
      return ask::for_copy;
    case operation::write_take:
    case operation::write_take_suspends:
    case operation::read_take:
      return ask::for_object;
    default:
      return ask::to_run;
  }
}

/// One thing that happens in a job: changes its state.
class step final {
 public:
  step(job_state& s, const configuration& c, int guessed) : s_(s), c_(c), guessed_(guessed) {}

  bool has_asked_by_guess() const { return has_guessed_; }

  void fail(int error, const char* what) {
    if (s_.error != 0 || has_ended_) return;
    s_.error = error;
    s_.what = what;
  }

  // -- fibers

  void issue(int i, operation kind, int object) {
    fiber& f = s_.fibers[at(i)];
    f.does = kind;
    f.object = static_cast<std::uint8_t>(object);
    f.wrote_since = false;
    ask_for(i, kind == operation::destroy, asks(kind));
  }
  void ask_for(int i, bool destroys, ask how) {
    fiber& f = s_.fibers[at(i)];
    f.is = phase::waits;
    rank_services by(*this, f.rank);
    rank_objects r(s_.ranks[at(f.rank)], by, f.rank);
    const call c{name_of(i), writes(f.does), nullptr};
    f.is_noted = c_.notes_changes && !destroys && c.writes && r.has_object(f.object);
    switch (destroys     ? r.destroy(f.object, c)
            : f.is_noted ? r.begin_here(f.object, c)
                         : r.access(f.object, c, how)) {
      case next::run_on_object:
        return section(f.rank, i, true);
      case next::run_on_copy:
        return section_on_copy(i, true);
      case next::lost:
        return complete(i);
      case next::wait:
        return;
    }
  }
  void begin(int i) {
    fiber& f = s_.fibers[at(i)];
    rank_services by(*this, f.rank);
    rank_objects r(s_.ranks[at(f.rank)], by, f.rank);
    const bool has_object = r.has_object(f.object);
    if (!has_object && !r.has_copy(f.object)) {
      if (s_.ended == nobody) return fail(8, "a section runs where the object is not");
      const object_id object = f.object;
      complete(i);
      return r.begin(object);
    }
    if (has_object) {
      section(f.rank, i, true);
    } else {
      section_on_copy(i, true);
    }
    r.begin(s_.fibers[at(i)].is == phase::idle ? last_object_ : f.object);
  }
  void resume_in_object(int i) { section(s_.fibers[at(i)].where, i, false); }
  void resume_on_copy(int i) {
    fiber& f = s_.fibers[at(i)];
    rank_services by(*this, f.rank);
    rank_objects r(s_.ranks[at(f.rank)], by, f.rank);
    f.is = phase::refreshes;
    if (!r.resume_on_copy(f.object, {name_of(i), false, nullptr})) return;
    if (r.has_object(f.object)) {
      section(f.rank, i, false);
    } else if (r.has_copy(f.object)) {
      section_on_copy(i, false);
    } else {
      complete(i);  // home has ended: the method ends on what it has
    }
  }

  void complete(int i) {
    fiber& f = s_.fibers[at(i)];
    last_object_ = f.object;
    const int rank = f.rank;
    const int left = f.left;
    const bool gave_up = f.has_given_up;
    // Without end, numbers come again, but not while a message about the last call is on its way.
    const int made = c_.fibers[at(i)].is_endless ? (f.made + 1) % 4 : f.made + 1;
    f = {};
    f.made = made;
    f.rank = rank;
    f.has_given_up = gave_up;
    f.left = left - (c_.fibers[at(i)].is_endless || gave_up ? 0 : 1);
  }

  // -- ranks

  void arrive(int from, int to, const envelope& e) {
    bring(to, e);
    on(to, [&](rank_objects& r) { r.arrive(from, e.m); });
    const int i = fiber_of(e.m.about.name);
    if (e.m.what == kind::result && e.m.how == outcome::done && s_.error == 0 &&
        e.m.about.name == name_of(i) && s_.fibers[at(i)].is == phase::waits)
      fail(9, "a result has come, and its call still waits");
  }
  void go_on(int rank, int object) {
    on(rank, [&](rank_objects& r) { r.go_on(static_cast<object_id>(object)); });
  }
  void evict(int rank, int object) {
    if (c_.has_versions) --s_.evictions;
    on(rank, [&](rank_objects& r) { (void)r.evict(static_cast<object_id>(object)); });
  }
  void give_back(int rank, int object) {
    if (c_.has_versions) --s_.returns;
    on(rank, [&](rank_objects& r) { r.give_back(static_cast<object_id>(object)); });
  }
  void end(int rank) {
    s_.ended = rank;
    for (int from = 0; from < c_.ranks; ++from) {
      for (int k = 0; k < 2; ++k) channel(k, from, rank).clear();
    }
    s_.ranks[at(rank)] = {};
  }
  void notice(int rank) {
    s_.noticed |= 1u << rank;
    on(rank, [&](rank_objects& r) { r.note_end_of(s_.ended); });
    for (int i = 0; i < fibers(); ++i) {
      fiber& f = s_.fibers[at(i)];
      if (f.rank == rank && f.is == phase::in_object && f.where == s_.ended) give_up(i);
    }
  }
  static int fiber_of(const call_name& c) { return static_cast<int>(c.number % 16); }
  call_name name_of(int i) const {
    const fiber& f = s_.fibers[at(i)];
    return {f.rank, static_cast<std::uint64_t>(i + 16 * f.made)};
  }
  /// Ends the rank after this many more messages.
  void end_after(int messages, int rank) {
    messages_left_ = messages;
    ends_ = rank;
  }
  void end_now() { end(ends_); }

  std::deque<envelope>& channel(int k, int from, int to) {
    return s_.channels[at((k * c_.ranks + from) * c_.ranks + to)];
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int fibers() const { return static_cast<int>(s_.fibers.size()); }

  /// The runtime of one rank.
  class rank_services final : public services {
   public:
    rank_services(step& of, int me) : of_(of), me_(me) {}
    int ranks() const override { return of_.c_.ranks; }
    int home_of(object_id object) const override { return static_cast<int>(object); }
    int guess(object_id object) const override {
      of_.has_guessed_ = true;
      if (of_.guessed_ != nobody && of_.guessed_ != me_) return of_.guessed_;
      return home_of(object);
    }
    void note_place(object_id, int) override {}
    bool has_ended(int rank) const override {
      return of_.s_.ended == rank && (of_.s_.noticed & 1u << me_) != 0;
    }
    in_progress methods_in(object_id object) const override {
      in_progress most = in_progress::nothing;
      for (const fiber& f : of_.s_.fibers) {
        const bool is_in_it = f.is == phase::in_object && f.where == me_;
        const bool is_noted = f.is_noted && f.rank == me_ && !f.has_given_up;
        if ((is_in_it || is_noted) && f.object == object)
          most = std::max(most, writes(f.does) ? in_progress::writing : in_progress::reading);
      }
      return most;
    }
    void send(int to, const message& m) override {
      const held_bytes& here = of_.s_.bytes[at(me_)][static_cast<std::size_t>(m.object)];
      of_.send(me_, to, {m, here.object});
    }
    void forget_object(object_id object) override { bytes(object).object = 0; }
    void destroy(object_id object) override { bytes(object).object = 0; }
    void forget_copy(object_id object) override { bytes(object).copy = 0; }
    void run(object_id, const call& c) override { of_.section(me_, fiber_of(c.name), true); }
    void wake(object_id object, const call_name& c, woken how) override {
      of_.woken_up(me_, static_cast<int>(object), c, how);
    }
    void go_on_later(object_id object) override {
      of_.s_.go_on[at(me_ * of_.c_.objects + static_cast<int>(object))] = 1;
    }
    void refuse(const message&, const char* why) override { of_.fail(5, why); }

   private:
    held_bytes& bytes(object_id object) {
      return of_.s_.bytes[at(me_)][static_cast<std::size_t>(object)];
    }
    step& of_;
    int me_;
  };

  template <class Action>
  void on(int rank, Action&& action) {
    rank_services by(*this, rank);
    rank_objects r(s_.ranks[at(rank)], by, rank);
    action(r);
  }

  void send(int from, int to, const envelope& e) {
    if (s_.ended == from) return;
    if (to == from) return fail(6, "a rank sends to itself");
    if (e.m.hops > 3) return fail(6, "a call was sent on more than twice");
    if (s_.ended == to) return;
    std::deque<envelope>& way = channel(c_.one_class ? 0 : is_reply(e.m.what), from, to);
    way.push_back(e);
    if (way.size() > 8) fail(7, "a channel has more messages than there can be");
    if (ends_ == from && messages_left_-- == 1) {
      end(from);
      has_ended_ = true;  // what it does from now on, nobody sees
    }
  }

  void woken_up(int rank, int object, const call_name& c, woken how) {
    const int i = fiber_of(c);
    fiber& f = s_.fibers[at(i)];
    if (f.has_given_up) return;
    if (c != name_of(i)) return fail(9, "a call is told to go on that has ended");
    const bool runs_elsewhere = f.is == phase::in_object && f.where != f.rank;
    if (f.rank != rank || f.object != object ||
        !(f.is == phase::waits || f.is == phase::refreshes ||
          (runs_elsewhere && how == woken::lost)))
      return fail(9, "a call is told to go on that does not wait");
    const bool refreshed = how == woken::refreshed;
    if (refreshed != (f.is == phase::refreshes) && how != woken::lost)
      return fail(9, "a call is told what it has not asked for");
    switch (how) {
      case woken::on_object:
      case woken::on_copy:
        f.is = phase::told;
        return;
      case woken::refreshed:
        f.is = phase::told_refreshed;
        return;
      case woken::again:
        f.is = phase::told_again;
        return;
      case woken::lost:
        return give_up(i);
      case woken::ended:
      case woken::refused:
      case woken::destroyed:
        return complete(i);
    }
  }

  /// The bytes that come with a message are here.
  void bring(int to, const envelope& e) {
    held_bytes& here = s_.bytes[at(to)][static_cast<std::size_t>(e.m.object)];
    if (e.m.what == kind::object) here.object = e.version;
    const entry* const known = s_.ranks[at(to)].entries.find(e.m.object);
    if (e.m.what == kind::grant && known != nullptr && known->asks_for_copy == e.m.about.name)
      here.copy = e.version;
  }

  void section(int where, int i, bool is_first) {
    fiber& f = s_.fibers[at(i)];
    const int o = f.object;
    bool is_there = false;
    on(where, [&](rank_objects& r) { is_there = r.has_object(static_cast<object_id>(o)); });
    if (!is_there) return fail(8, "a section runs where the object is not");
    held_bytes& here = s_.bytes[at(where)][at(o)];
    if (writes(f.does)) {
      for (int p = 0; p < c_.ranks; ++p) {
        if (s_.ended == p || p == where) continue;
        bool has_copy = false;
        on(p, [&](rank_objects& r) { has_copy = r.has_copy(static_cast<object_id>(o)); });
        if (has_copy || grant_is_on_its_way(o, p))
          fail(1, "a write while a copy is good, or on its way");
      }
      if (c_.has_versions) here.object = ++s_.latest[at(o)];
      for (int j = 0; j < fibers(); ++j) {
        fiber& g = s_.fibers[at(j)];
        if (j != i && g.object == o && c_.waits &&
            (g.is == phase::in_object || g.is == phase::in_copy))
          g.wrote_since = true;
      }
    } else if (c_.has_versions && here.object != s_.latest[at(o)]) {
      fail(2, "a read of an old version");
    }
    f.is_noted = false;
    if (is_first && suspends(f.does)) {
      f.is = phase::in_object;
      f.where = where;
    } else {
      finish(where, i);
    }
  }
  bool grant_is_on_its_way(int o, int to) {
    const entry* const known = s_.ranks[at(to)].entries.find(static_cast<object_id>(o));
    if (known == nullptr) return false;
    for (int k = 0; k < 2; ++k) {
      for (int from = 0; from < c_.ranks; ++from) {
        for (const envelope& e : channel(k, from, to)) {
          if (e.m.what == kind::grant && e.m.object == static_cast<object_id>(o) &&
              e.m.about.name == known->asks_for_copy)
            return true;
        }
      }
    }
    return false;
  }
  void section_on_copy(int i, bool is_first) {
    fiber& f = s_.fibers[at(i)];
    if (c_.has_versions && s_.ended == nobody &&
        s_.bytes[at(f.rank)][f.object].copy != s_.latest[f.object])
      fail(2, "a read of an old version");
    if (is_first && suspends(f.does)) {
      f.is = phase::in_copy;
      f.where = f.rank;
    } else {
      complete(i);
    }
  }
  void finish(int where, int i) {
    fiber& f = s_.fibers[at(i)];
    if (f.rank == where) return complete(i);
    f.is = phase::waits;
    f.where = nobody;
    message m{.what = kind::result, .object = f.object};
    m.about.name = name_of(i);
    if (f.has_given_up) f.is = phase::idle;
    send(where, f.rank, {m, 0});
  }
  /// The call may still run somewhere; nobody looks at its answer.
  void give_up(int i) {
    fiber& f = s_.fibers[at(i)];
    f.has_given_up = true;
    f.left = 0;
    if (f.is != phase::in_object || f.where == s_.ended) f.is = phase::idle;
  }

  job_state& s_;
  const configuration& c_;
  int guessed_;
  mutable bool has_guessed_ = false;
  object_id last_object_ = 0;
  int messages_left_ = 0;
  int ends_ = nobody;
  bool has_ended_ = false;
};

std::uint32_t label(unsigned what, unsigned a, unsigned b, unsigned d, unsigned e) {
  return what << 24 | a << 18 | b << 12 | d << 6 | e;
}
std::uint32_t label(unsigned what, unsigned a, int b, int d, int e) {
  return label(what, a, static_cast<unsigned>(b) & 63, static_cast<unsigned>(d) & 63,
               static_cast<unsigned>(e) & 63);
}

}  // namespace

job::State job::initial() const {
  State s;
  s.ranks.resize(static_cast<std::size_t>(c_.ranks));
  s.bytes.resize(s.ranks.size(), std::vector<held_bytes>(static_cast<std::size_t>(c_.objects)));
  s.channels.resize(2 * s.ranks.size() * s.ranks.size());
  s.latest.resize(static_cast<std::size_t>(c_.objects));
  s.go_on.resize(s.ranks.size() * s.latest.size());
  for (const fiber_plan& p : c_.fibers) {
    fiber f;
    f.rank = p.rank;
    f.left = p.operations;
    s.fibers.push_back(f);
  }
  s.evictions = c_.evictions;
  s.returns = c_.returns;
  return s;
}

void job::successors(const State& s, std::vector<explore::successor<job>>& out) const {
  const int fibers = static_cast<int>(s.fibers.size());
  const auto is_alive = [&](int rank) { return s.ended != rank; };
  const auto with = [&](int process, std::uint32_t what, int guess, auto&& change) {
    out.push_back({s, process, what});
    step t(out.back().state, c_, guess);
    change(t);
    return t.has_asked_by_guess();
  };
  // All guesses that matter, of a step that may ask by one.
  const auto with_guesses = [&](int process, std::uint32_t what, int me, auto&& change) {
    for (int guess = 0; guess < c_.ranks; ++guess) {
      if (guess == me || (!is_alive(guess) && (s.noticed & 1u << me))) continue;
      if (!with(process, what | static_cast<unsigned>(guess), guess, change)) return;
    }
    if (c_.ranks == 1 || (s.ended != nobody && c_.ranks == 2)) with(process, what, nobody, change);
  };
  // Messages arrive.
  for (int k = 0; k < 2; ++k) {
    for (int from = 0; from < c_.ranks; ++from) {
      for (int to = 0; to < c_.ranks; ++to) {
        const int number = (k * c_.ranks + from) * c_.ranks + to;
        const std::deque<envelope>& way = s.channels[static_cast<std::size_t>(number)];
        if (way.empty()) continue;
        const envelope& e = way.front();
        const auto what = label(1, static_cast<unsigned>(e.m.what), from, to,
                                static_cast<int>(e.m.about.name.number % 16));
        const auto arrive = [&](step& t) {
          t.channel(k, from, to).pop_front();
          t.arrive(from, to, e);
        };
        with(number, what, nobody, arrive);
        // The rank ends between the two messages of a hand-over.
        if (to == c_.may_end && s.ended == nobody &&
            (e.m.what == kind::hand || e.m.what == kind::take)) {
          with(63, label(17, 0, to, 0, 0), nobody, [&](step& t) {
            t.end_after(1, to);
            arrive(t);
            t.end_now();
          });
        }
      }
    }
  }
  const int first_fiber = 2 * c_.ranks * c_.ranks;
  for (int i = 0; i < fibers; ++i) {
    const fiber& f = s.fibers[static_cast<std::size_t>(i)];
    if (!is_alive(f.is == phase::in_object ? f.where : f.rank)) continue;
    if (f.has_given_up && f.is != phase::in_object) continue;
    const int process = std::min(62, first_fiber + i);
    const auto kind_of = static_cast<unsigned>(f.does);
    const auto may_resume = [&] {
      if (!c_.waits || f.wrote_since) return true;
      // Nobody is left who could write.
      return std::none_of(s.fibers.begin(), s.fibers.end(), [&](const fiber& g) {
        return &g != &f && !(g.is == phase::idle && g.left == 0) && g.is != phase::in_object &&
               g.is != phase::in_copy;
      });
    };
    switch (f.is) {
      case phase::idle:
        if (f.left == 0) break;
        for (int o = 0; o < c_.objects; ++o) {
          for (unsigned kind = 0; kind < static_cast<unsigned>(operation::count_); ++kind) {
            if (!(c_.fibers[static_cast<std::size_t>(i)].kinds & 1u << kind)) continue;
            with_guesses(62, label(3, kind, i, o, 0), f.rank,
                         [&](step& t) { t.issue(i, static_cast<operation>(kind), o); });
          }
        }
        break;
      case phase::told:
        with(process, label(4, kind_of, i, f.rank, 0), nobody, [&](step& t) { t.begin(i); });
        break;
      case phase::told_again:
        with_guesses(process, label(5, kind_of, i, 0, 0), f.rank,
                     [&](step& t) { t.ask_for(i, false, ask::to_run); });
        break;
      case phase::in_object:
        if (may_resume())
          with(process, label(6, kind_of, i, f.where, 0), nobody,
               [&](step& t) { t.resume_in_object(i); });
        break;
      case phase::in_copy:
        if (may_resume())
          with_guesses(process, label(7, kind_of, i, 0, 0), f.rank,
                       [&](step& t) { t.resume_on_copy(i); });
        break;
      case phase::told_refreshed:
        with(process, label(8, kind_of, i, f.rank, 0), nobody, [&](step& t) { t.complete(i); });
        break;
      case phase::waits:
      case phase::refreshes:
        break;
    }
  }
  for (int rank = 0; rank < c_.ranks; ++rank) {
    if (!is_alive(rank)) continue;
    for (int o = 0; o < c_.objects; ++o) {
      const int number = rank * c_.objects + o;
      if (s.go_on[static_cast<std::size_t>(number)]) {
        const auto go_on = [&](step& t) {
          out.back().state.go_on[static_cast<std::size_t>(number)] = 0;
          t.go_on(rank, o);
        };
        with(std::min(62, first_fiber + fibers + number), label(9, 0, rank, 0, o), nobody, go_on);
        if (rank == c_.may_end && s.ended == nobody) {
          with(63, label(17, 0, rank, 0, o), nobody, [&](step& t) {
            t.end_after(1, rank);
            go_on(t);
            t.end_now();
          });
        }
      }
      const entry* const known =
          s.ranks[static_cast<std::size_t>(rank)].entries.find(static_cast<object_id>(o));
      if (known == nullptr) continue;
      const entry& e = *known;
      if (e.has == holds::copy && e.promised == 0 && e.is_invalidated_by == nobody &&
          s.evictions > 0)
        with(62, label(12, 0, rank, 0, o), nobody, [&](step& t) { t.evict(rank, o); });
      if (e.has == holds::object && rank != o && s.returns > 0)
        with(62, label(13, 0, rank, 0, o), nobody, [&](step& t) { t.give_back(rank, o); });
    }
  }
  if (c_.may_end != nobody && s.ended == nobody)
    with(63, label(15, 0, c_.may_end, 0, 0), nobody, [&](step& t) { t.end(c_.may_end); });
  if (s.ended != nobody) {
    for (int rank = 0; rank < c_.ranks; ++rank) {
      if (rank == s.ended || (s.noticed & 1u << rank)) continue;
      const auto left = [&](int k) {
        return !s.channels[static_cast<std::size_t>((k * c_.ranks + s.ended) * c_.ranks + rank)]
                    .empty();
      };
      if (!left(0) && !left(1))
        with(63, label(16, 0, rank, 0, 0), nobody, [&](step& t) { t.notice(rank); });
    }
  }
}

bool job::is_final(const State& s) const {
  for (const fiber& f : s.fibers) {
    if (s.ended != f.rank && !f.has_given_up && (f.is != phase::idle || f.left != 0)) return false;
  }
  for (int rank = 0; rank < c_.ranks; ++rank) {
    if (rank == s.ended) continue;
    const known_objects& known = s.ranks[static_cast<std::size_t>(rank)];
    bool waits = false;
    known.entries.each([&](object_id, const entry& e) {
      waits = waits || !e.unacknowledged.empty() || e.has_order() ||
              e.is_invalidated_by != nobody || !e.writers.empty() || e.promised != 0 ||
              !e.joined.empty() || (c_.may_end == nobody && (!e.held.empty() || !e.sent.empty()));
    });
    known.directories.each([&](object_id, const directory& d) {
      waits = waits || (c_.may_end == nobody && (d.moves_to != nobody || !d.queue.empty()));
    });
    if (waits) return false;
  }
  return true;
}

bool job::is_waiting(const State& s) const {
  return s.fibers[0].left == 1 && s.fibers[0].is != phase::idle;
}

explore::fingerprint job::fingerprint_of(const State& s) const {
  std::vector<unsigned char> text;
  text.reserve(512);
  const auto put = [&](auto value) { text.push_back(static_cast<unsigned char>(value)); };
  const auto put_name = [&](const call_name& n) { put(n ? n.number + 1 : 0); };
  const auto put_message = [&](const message& m) {
    put(m.what);
    put(m.object << 4 | static_cast<unsigned>(m.how) << 2 | (m.is_sure ? 2u : 0u) |
        (m.about.writes ? 1u : 0u));
    put(m.hops);
    put_name(m.about.name);
    put(m.rank + 1);
  };
  for (const auto& way : s.channels) {
    put(way.size());
    for (const envelope& e : way) {
      put_message(e.m);
      put(e.version);
    }
  }
  for (int rank = 0; rank < c_.ranks; ++rank) {
    const known_objects& known = s.ranks[static_cast<std::size_t>(rank)];
    for (int o = 0; o < c_.objects; ++o) {
      const held_bytes& b = s.bytes[static_cast<std::size_t>(rank)][static_cast<std::size_t>(o)];
      put(b.object);
      put(b.copy);
      const entry* const where = known.entries.find(static_cast<object_id>(o));
      put(where != nullptr);
      if (where != nullptr) {
        const entry& e = *where;
        put(static_cast<unsigned>(e.has) | (e.is_asked_about != nobody ? 4u : 0u) |
            (e.is_lost ? 8u : 0u));
        put(e.promised);
        put(e.copies.size());
        for (const copy_given& c : e.copies) {
          put(c.rank);
          put_name(c.to);
        }
        put(e.unacknowledged.size());
        for (const int r : e.unacknowledged) put(r);
        put(e.writers.size());
        for (const call& c : e.writers) put_name(c.name);
        put(e.has_order());
        if (e.has_order()) put_message(e.order.front());
        put_name(e.asks_for_copy);
        put_name(e.asks_for_object);
        put(e.joined.size());
        for (const call_name& n : e.joined) put_name(n);
        put(e.sent.size());
        for (const call_sent& c : e.sent) {
          put_name(c.name);
          put(c_.may_end == nobody ? 0 : c.to + 1);
        }
        put(e.is_invalidated_by + 1);
        if (e.is_invalidated_by != nobody) put_name(e.invalidated);
        put(e.held.size());
        for (const message& m : e.held) put_message(m);
      }
      put(s.go_on[static_cast<std::size_t>(rank * c_.objects + o)]);
      const directory* const home = known.directories.find(static_cast<object_id>(o));
      put(home != nullptr);
      if (home == nullptr) continue;
      const directory& d = *home;
      put(d.owner);
      put(d.moves_to + 1);
      put((d.is_destroyed ? 1u : 0u) | (d.is_lost ? 2u : 0u));
      put(d.queue.size());
      for (const message& m : d.queue) put_message(m);
    }
  }
  for (const std::uint8_t v : s.latest) put(v);
  for (const fiber& f : s.fibers) {
    put(f.left);
    put(f.made);
    put(f.does);
    put(static_cast<unsigned>(f.is) | (f.wrote_since ? 64u : 0u) | (f.has_given_up ? 128u : 0u) |
        (f.is_noted ? 256u : 0u));
    put(f.object);
    put(f.where + 1);
  }
  put(s.evictions);
  put(s.returns);
  put(s.error);
  put(s.ended + 1);
  put(s.noticed);
  text.resize((text.size() + 7) / 8 * 8);
  return explore::hash(text.data(), text.size());
}

std::string job::show(const State& s) const {
  std::string text;
  char line[200];
  for (std::size_t i = 0; i < s.fibers.size(); ++i) {
    const fiber& f = s.fibers[i];
    std::snprintf(line, sizeof line, "\n    fiber %zu on rank %d: %s, %s, %d to do", i, f.rank,
                  operation_names[static_cast<int>(f.does)], phase_names[static_cast<int>(f.is)],
                  f.left);
    text += line;
  }
  for (std::size_t rank = 0; rank < s.ranks.size(); ++rank) {
    s.ranks[rank].entries.each([&](object_id object, const entry& e) {
      std::snprintf(line, sizeof line,
                    "\n    rank %zu, object %d: has %d, promised %u, %zu copies, %zu to give up, "
                    "%zu writers, order %d, %zu held, %zu sent, %zu joined, invalidated by %d",
                    rank, static_cast<int>(object), static_cast<int>(e.has), e.promised,
                    e.copies.size(), e.unacknowledged.size(), e.writers.size(), e.has_order(),
                    e.held.size(), e.sent.size(), e.joined.size(), e.is_invalidated_by);
      text += line;
    });
    s.ranks[rank].directories.each([&](object_id object, const directory& d) {
      std::snprintf(line, sizeof line, "\n    home of %d: owner %d, moves to %d, %zu in the queue",
                    static_cast<int>(object), d.owner, d.moves_to, d.queue.size());
      text += line;
    });
  }
  return text;
}

std::string job::name(std::uint32_t l) const {
  const unsigned what = l >> 24, a = l >> 18 & 63, b = l >> 12 & 63, d = l >> 6 & 63, e = l & 63;
  char line[200] = "";
  const auto put = [&](const char* format, auto... x) {
    std::snprintf(line, sizeof line, format, x...);
  };
  switch (what) {
    case 1:
      put("%s (call %u) arrives, rank %u to %u", kind_names[a], e, b, d);
      break;
    case 3:
      put("fiber %u begins %s on object %u, guess %u", b, operation_names[a], d, e);
      break;
    case 4:
      put("fiber %u runs (%s) on rank %u", b, operation_names[a], d);
      break;
    case 5:
      put("fiber %u makes its call again, guess %u", b, e);
      break;
    case 6:
      put("fiber %u goes on (%s) on rank %u", b, operation_names[a], d);
      break;
    case 7:
      put("fiber %u goes on, on a copy or for bytes, guess %u", b, e);
      break;
    case 8:
      put("fiber %u ends on fresh bytes", b);
      break;
    case 9:
      put("rank %u goes on with object %u", b, e);
      break;
    case 12:
      put("rank %u evicts its copy", b);
      break;
    case 13:
      put("rank %u wants to give the object back", b);
      break;
    case 15:
      put("rank %u ends", b);
      break;
    case 16:
      put("rank %u hears of the end", b);
      break;
    case 17:
      put("rank %u ends while it hands over", b);
      break;
    default:
      break;
  }
  return line;
}

}  // namespace models::objects
