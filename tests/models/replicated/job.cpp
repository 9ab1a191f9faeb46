// SPDX-License-Identifier: Apache-2.0
#include "replicated/job.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace models::replicated {

namespace {

const char* const operation_names[] = {"read", "update", "refresh", "destroy"};
const char* const kind_names[] = {"subscribe",  "refresh",   "push",  "ended",
                                  "subscribed", "refreshed", "pushed"};
const char* const form_names[] = {"", "update", "updated", "destroy"};
const char* const phase_names[] = {"idle", "waits", "updates", "told", "sees"};

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// One thing that happens in a job: changes its state.
class step final {
 public:
  step(job_state& s, const configuration& c) : s_(s), c_(c) {}

  void fail(int error, const char* what) {
    if (s_.error != 0) return;
    s_.error = error;
    s_.what = what;
  }

  // -- fibers

  void issue(int i, operation kind) {
    fiber& f = s_.fibers[at(i)];
    f.does = kind;
    f.number = kind == operation::refresh ? s_.writer.newest : 0;
    if (f.rank == 0) return issue_at_writer(i);
    f.is = phase::waits;
    switch (kind) {
      case operation::read:
        return on_reader(f.rank, [&](reader& r) { go_on(i, r.read(name_of(i))); });
      case operation::refresh:
        return on_reader(f.rank, [&](reader& r) { go_on(i, r.refresh(name_of(i))); });
      default:
        if (s_.ended == 0 && (s_.noticed & 1u << f.rank) != 0) return complete(i);
        f.is = phase::updates;
        return send(
            f.rank, 0,
            {.is = kind == operation::update ? envelope::form::update : envelope::form::destroy,
             .m = {},
             .fiber = i});
    }
  }
  /// A call that was woken goes on.
  void go_on_woken(int i) {
    fiber& f = s_.fibers[at(i)];
    if (f.is == phase::sees) return complete_update(i);
    // What it waited for may have gone again: a read asks again, as the runtime does.
    if (f.does == operation::read) return issue(i, operation::read);
    complete_refresh(i);
  }
  void drop(int rank) {
    --s_.drops;
    on_reader(rank, [](reader& r) { r.drop(); });
  }

  // -- ranks

  void arrive(int from, int to, const envelope& e) {
    if (e.is == envelope::form::protocol) {
      if (to == 0) return on_writer([&](writer& w) { w.arrive(from, e.m); });
      return on_reader(to, [&](reader& r) { r.arrive(e.m); });
    }
    if (e.is == envelope::form::updated) return see(e.fiber, e.number);
    e.is == envelope::form::update ? update_at_writer(e.fiber) : destroy_at_writer(e.fiber);
  }
  void end(int rank) {
    s_.ended = rank;
    for (int from = 0; from < c_.ranks; ++from) {
      for (int k = 0; k < 2; ++k) channel(k, from, rank).clear();
    }
  }
  void notice(int rank) {
    s_.noticed |= 1u << rank;
    if (rank == 0) return on_writer([&](writer& w) { w.note_end_of(s_.ended); });
    if (s_.ended != 0) return;
    on_reader(rank, [](reader& r) { r.note_end_of_writer(); });
    for (int i = 0; i < static_cast<int>(s_.fibers.size()); ++i) {
      const fiber& f = s_.fibers[at(i)];
      if (f.rank == rank && f.is == phase::updates) complete(i);  // with rank_lost
    }
  }

  std::deque<envelope>& channel(int k, int from, int to) {
    return s_.channels[at((k * c_.ranks + from) * c_.ranks + to)];
  }

 private:
  std::uint64_t name_of(int i) const {
    return static_cast<std::uint64_t>(i + 16 * s_.fibers[at(i)].made);
  }

  class reader_of_rank final : public reader_services {
   public:
    reader_of_rank(step& of, int me) : of_(of), me_(me) {}
    void send(const message& m) override { of_.send(me_, 0, {.m = m}); }
    void install(version) override {}
    void forget() override {}
    void wake(std::uint64_t call, woken how) override { of_.woken_up(me_, call, how); }
    void refuse(const message&, const char* why) override { of_.fail(5, why); }

   private:
    step& of_;
    int me_;
  };
  class writer_of_rank final : public writer_services {
   public:
    explicit writer_of_rank(step& of) : of_(of) {}
    void send(int to, const message& m) override { of_.send(0, to, {.m = m}); }
    void wake(std::uint64_t call) override { of_.answer(static_cast<int>(call)); }

   private:
    step& of_;
  };
  template <class Action>
  void on_reader(int rank, Action action) {
    reader_of_rank by(*this, rank);
    reader r(s_.readers[at(rank)], by);
    action(r);
  }
  template <class Action>
  void on_writer(Action action) {
    writer_of_rank by(*this);
    writer w(s_.writer, by);
    action(w);
  }

  void send(int from, int to, const envelope& e) {
    if (s_.ended == to || s_.ended == from) return;
    std::deque<envelope>& way = channel(is_reply(e), from, to);
    const auto is_push = [&](const envelope& p) {
      return p.is == envelope::form::protocol && p.m.what == kind::push && p.m.of == e.m.of;
    };
    if (is_push(e) && (std::any_of(way.begin(), way.end(), is_push) || answer_is_on_its_way(to, e)))
      fail(6, "two pushes to a subscriber without an answer");
    way.push_back(e);
    if (way.size() > 8) fail(7, "a channel has more messages than there can be");
  }
  bool answer_is_on_its_way(int from, const envelope& push) {
    const std::deque<envelope>& way = channel(1, from, 0);
    return std::any_of(way.begin(), way.end(), [&](const envelope& p) {
      return p.is == envelope::form::protocol && p.m.what == kind::pushed && p.m.of == push.m.of;
    });
  }

  void go_on(int i, next how) {
    fiber& f = s_.fibers[at(i)];
    if (how == next::wait) return;
    if (how != next::go_on) return complete(i);
    if (f.does == operation::read) return read(i);
    if (f.does == operation::refresh) return complete_refresh(i);
    complete_update(i);
  }
  void woken_up(int rank, std::uint64_t call, woken how) {
    const int i = static_cast<int>(call % 16);
    fiber& f = s_.fibers[at(i)];
    if (call != name_of(i) || f.rank != rank || (f.is != phase::waits && f.is != phase::updates))
      return fail(9, "a call is told to go on that does not wait");
    if (how != woken::here) return complete(i);
    f.is = f.does == operation::update ? phase::sees : phase::told;
  }
  void read(int i) {
    const int rank = s_.fibers[at(i)].rank;
    const version here = rank == 0 ? s_.writer.newest : s_.readers[at(rank)].here;
    version& seen = s_.seen[at(rank)];
    if (here == 0) fail(1, "a read where no version is");
    if (here < seen) fail(1, "a rank reads backwards, or does not see its own update");
    if (c_.bound != no_bound && here + static_cast<version>(c_.bound) < s_.finished)
      fail(2, "a reader is further behind a finished update than was promised");
    seen = here;
    complete(i);
  }
  void complete_refresh(int i) {
    const fiber& f = s_.fibers[at(i)];
    const version here = f.rank == 0 ? s_.writer.newest : s_.readers[at(f.rank)].here;
    if (here != 0 && here < f.number) fail(3, "refresh has returned, and an older version is here");
    complete(i);
  }
  void complete_update(int i) {
    const fiber& f = s_.fibers[at(i)];
    s_.seen[at(f.rank)] = std::max(s_.seen[at(f.rank)], f.number);
    complete(i);
  }
  void complete(int i) {
    fiber& f = s_.fibers[at(i)];
    f = {.rank = f.rank, .left = f.left - 1, .made = f.made + 1};
  }

  // -- updates at the writer

  void issue_at_writer(int i) {
    s_.fibers[at(i)].is = phase::updates;
    switch (s_.fibers[at(i)].does) {
      case operation::update:
        return update_at_writer(i);
      case operation::destroy:
        return destroy_at_writer(i);
      default:
        return s_.writer.is_ended ? complete(i) : read(i);
    }
  }
  void update_at_writer(int i) {
    if (s_.writer.is_ended) return answer_with(i, 0);
    on_writer([&](writer& w) {
      s_.fibers[at(i)].number = w.publish();
      const version number = s_.fibers[at(i)].number;
      if (c_.bound == no_bound ||
          w.is_near(static_cast<std::uint64_t>(i), number, static_cast<version>(c_.bound)))
        answer(i);
    });
  }
  void destroy_at_writer(int i) {
    if (!s_.writer.is_ended) on_writer([](writer& w) { w.end(); });
    answer_with(i, 0);
  }
  void answer(int i) {
    const version number = s_.fibers[at(i)].number;
    s_.finished = std::max(s_.finished, number);
    answer_with(i, number);
  }
  void answer_with(int i, version number) {
    const int rank = s_.fibers[at(i)].rank;
    if (rank == 0) return complete_update(i);
    send(0, rank, {.is = envelope::form::updated, .m = {}, .fiber = i, .number = number});
  }
  /// The answer of an update is here.
  void see(int i, version number) {
    fiber& f = s_.fibers[at(i)];
    f.number = number;
    f.is = phase::waits;
    if (f.does == operation::destroy) return complete(i);
    on_reader(f.rank, [&](reader& r) { go_on(i, r.see(name_of(i), number)); });
  }

  job_state& s_;
  const configuration& c_;
};

std::uint32_t label(unsigned what, unsigned a, int b, int d) {
  return what << 24 | a << 16 | (static_cast<unsigned>(b) & 255) << 8 |
         (static_cast<unsigned>(d) & 255);
}

}  // namespace

job::State job::initial() const {
  State s;
  s.readers.resize(at(c_.ranks));
  s.seen.resize(at(c_.ranks));
  s.channels.resize(at(2 * c_.ranks * c_.ranks));
  for (const fiber_plan& p : c_.fibers) s.fibers.push_back({.rank = p.rank, .left = p.operations});
  s.drops = c_.drops;
  return s;
}

void job::successors(const State& s, std::vector<explore::successor<job>>& out) const {
  const auto with = [&](int process, std::uint32_t what, auto&& change) {
    out.push_back({s, process, what});
    step t(out.back().state, c_);
    change(t);
  };
  for (int k = 0; k < 2; ++k) {
    for (int from = 0; from < c_.ranks; ++from) {
      for (int to = 0; to < c_.ranks; ++to) {
        const int number = (k * c_.ranks + from) * c_.ranks + to;
        const std::deque<envelope>& way = s.channels[at(number)];
        if (way.empty()) continue;
        const envelope& e = way.front();
        const unsigned what = e.is == envelope::form::protocol ? static_cast<unsigned>(e.m.what)
                                                               : 16 + static_cast<unsigned>(e.is);
        with(number, label(1, what, from, to), [&](step& t) {
          t.channel(k, from, to).pop_front();
          t.arrive(from, to, e);
        });
      }
    }
  }
  for (int i = 0; i < static_cast<int>(s.fibers.size()); ++i) {
    const fiber& f = s.fibers[at(i)];
    if (f.rank == s.ended) continue;
    if (f.is == phase::told || f.is == phase::sees)
      with(61, label(2, static_cast<unsigned>(f.does), i, f.rank),
           [&](step& t) { t.go_on_woken(i); });
    if (f.is != phase::idle || f.left == 0) continue;
    for (unsigned kind = 0; kind < static_cast<unsigned>(operation::count_); ++kind) {
      if ((c_.fibers[at(i)].kinds & 1u << kind) != 0)
        with(62, label(3, kind, i, f.rank),
             [&](step& t) { t.issue(i, static_cast<operation>(kind)); });
    }
  }
  for (int rank = 1; rank < c_.ranks; ++rank) {
    const reader_state& r = s.readers[at(rank)];
    if (s.drops > 0 && r.here != 0 && !r.asks && rank != s.ended)
      with(62, label(4, 0, rank, 0), [&](step& t) { t.drop(rank); });
  }
  if (c_.may_end != nobody && s.ended == nobody)
    with(63, label(5, 0, c_.may_end, 0), [&](step& t) { t.end(c_.may_end); });
  if (s.ended == nobody) return;
  for (int rank = 0; rank < c_.ranks; ++rank) {
    if (rank == s.ended || (s.noticed & 1u << rank) != 0) continue;
    const auto all_has_arrived = [&](int k) {
      return s.channels[at((k * c_.ranks + s.ended) * c_.ranks + rank)].empty();
    };
    if (all_has_arrived(0) && all_has_arrived(1))
      with(63, label(6, 0, rank, 0), [&](step& t) { t.notice(rank); });
  }
}

bool job::is_final(const State& s) const {
  for (const fiber& f : s.fibers) {
    if (f.rank != s.ended && (f.is != phase::idle || f.left != 0)) return false;
  }
  for (int rank = 1; rank < c_.ranks; ++rank) {
    const reader_state& r = s.readers[at(rank)];
    if (rank == s.ended) continue;
    if (!r.waiting.empty() || r.asks) return false;
    if (s.ended == 0 || r.here == 0) continue;
    if (s.writer.is_ended || r.here != s.writer.newest) return false;
  }
  if (s.ended == 0) return true;
  for (const subscriber& u : s.writer.subscribers) {
    if (u.in_flight != 0 || u.rank == s.ended) return false;
  }
  return s.writer.waiting.empty();
}

explore::fingerprint job::fingerprint_of(const State& s) const {
  std::vector<unsigned char> text;
  text.reserve(256);
  const auto put = [&](auto value) { text.push_back(static_cast<unsigned char>(value)); };
  for (const auto& way : s.channels) {
    put(way.size());
    for (const envelope& e : way) {
      put(e.is);
      if (e.is != envelope::form::protocol) {
        put(e.fiber);
        put(e.number);
        continue;
      }
      put(static_cast<unsigned>(e.m.what) << 4 | static_cast<unsigned>(e.m.how) << 1 |
          (e.m.brings ? 1u : 0u));
      put(e.m.of);
      put(e.m.number);
      put(e.m.call);
    }
  }
  for (const reader_state& r : s.readers) {
    put(r.here);
    put(r.latest);
    put((r.asks ? 1u : 0u) | (r.is_ended ? 2u : 0u) | (r.is_lost ? 4u : 0u));
    put(r.waiting.size());
    for (const waiting_call& w : r.waiting) {
      put(w.call);
      put(w.what);
      put(w.number);
    }
  }
  put(s.writer.newest);
  put(s.writer.is_ended);
  put(s.writer.subscribers.size());
  for (const subscriber& u : s.writer.subscribers) {
    put(u.rank);
    put(u.of);
    put(u.in_flight);
    put(u.acknowledged);
  }
  put(s.writer.waiting.size());
  for (const waiting_update& u : s.writer.waiting) {
    put(u.call);
    put(u.number);
  }
  for (const version v : s.seen) put(v);
  for (const fiber& f : s.fibers) {
    put(f.left);
    put(f.does);
    put(f.is);
    put(f.number);
  }
  put(s.finished);
  put(s.drops);
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
  for (std::size_t rank = 1; rank < s.readers.size(); ++rank) {
    const reader_state& r = s.readers[rank];
    std::snprintf(line, sizeof line, "\n    rank %zu: version %d, asks %d, %zu wait", rank,
                  static_cast<int>(r.here), r.asks, r.waiting.size());
    text += line;
  }
  for (const subscriber& u : s.writer.subscribers) {
    std::snprintf(line, sizeof line, "\n    subscriber %d: acknowledged %d of %d, in flight %d",
                  u.rank, static_cast<int>(u.acknowledged), static_cast<int>(s.writer.newest),
                  static_cast<int>(u.in_flight));
    text += line;
  }
  return text;
}

std::string job::name(std::uint32_t l) const {
  const unsigned what = l >> 24, a = l >> 16 & 255, b = l >> 8 & 255, d = l & 255;
  char line[120] = "";
  if (what == 1)
    std::snprintf(line, sizeof line, "%s arrives, rank %u to %u",
                  a < 16 ? kind_names[a] : form_names[a - 16], b, d);
  if (what == 2) std::snprintf(line, sizeof line, "fiber %u goes on (%s)", b, operation_names[a]);
  if (what == 3) std::snprintf(line, sizeof line, "fiber %u begins %s", b, operation_names[a]);
  if (what == 4) std::snprintf(line, sizeof line, "rank %u drops its version", b);
  if (what == 5) std::snprintf(line, sizeof line, "rank %u ends", b);
  if (what == 6) std::snprintf(line, sizeof line, "rank %u hears of the end", b);
  return line;
}

}  // namespace models::replicated
