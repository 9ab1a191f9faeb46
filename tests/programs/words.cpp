// SPDX-License-Identifier: Apache-2.0
// Random programs whose accesses each say a word drawn at random (via::rpc, migrate, cache, fetch,
// automatic or none): the words change what a program costs, never what it computes.
//
//   words [--seed S] [--programs N] [--limit SECONDS] [--trace 1]
//
// `--trace 1` prints each call as it is made.
//
// A program makes objects on ranks drawn at random and goes through phases, with barriers between
// them. In a phase, each object is read by all, changed by one rank, or changed by all. Every rank
// draws the calls of all ranks and adds them up serially; so it knows between which bounds what it
// reads must lie. Where nobody else changes the object, there is one such value. run.sh beside this
// adds the settings.
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seeded.hpp"

using namespace sojourn;

namespace {

using seeded::mix;
using seeded::u64;

/// A sequence of numbers: the same on every rank.
class draws {
 public:
  explicit draws(u64 seed) : state_(seed) {}
  u64 operator()(u64 choices) { return (state_ = mix(state_, 1)) % choices; }

 private:
  u64 state_;
};

constexpr int keys = 3;

// ---- The objects --------------------------------------------------------------------------------

/// One that travels as bytes.
struct tally {
  std::array<long, keys> sums{};
  long twice = 0;  ///< Of all sums: a torn object would show.
  bool is_torn = false;

  void look() {
    long sum = 0;
    for (const long s : sums) sum += s;
    if (twice != 2 * sum) is_torn = true;
  }
  long add(int key, long n) {
    look();
    sums[static_cast<std::size_t>(key)] += n;
    twice += 2 * n;
    return sums[static_cast<std::size_t>(key)];
  }
  /// Waits before it changes anything, and then in the middle.
  long add_slowly(int key, long n) {
    yield();
    add(key, n / 2);
    yield();
    return add(key, n - n / 2);
  }
  long get(int key) const { return is_torn ? -1 : sums[static_cast<std::size_t>(key)]; }
  /// -1 when the object goes back.
  long get_slowly(int key) const {
    const long before = get(key);
    yield();
    return get(key) < before ? -1 : get(key);
  }
};

/// One that owns memory.
class notes {
 public:
  long add(int key, long n) {
    ++added_;
    lines_.push_back(std::to_string(n));
    if (lines_.size() > 20) lines_.erase(lines_.begin());
    return sums_[name_of(key)] += n;
  }
  long add_slowly(int key, long n) {
    yield();
    add(key, n / 2);
    yield();
    return add(key, n - n / 2);
  }
  long get(int key) const {
    const auto known = sums_.find(name_of(key));
    return known == sums_.end() ? 0 : known->second;
  }
  long get_slowly(int key) const {
    const long before = get(key);
    const long added = added_;
    yield();
    return get(key) < before || added_ < added ? -1 : get(key);
  }
  /// With arguments and a result that are marshalled.
  std::string text(const std::string& before, int key) const {
    return before + std::to_string(get(key));
  }

  template <class Archive>
  void serialize(Archive& ar) {
    ar(sums_, lines_, added_);
  }

 private:
  static std::string name_of(int key) {
    return "a name that is too long to lie in a string " + std::to_string(key);
  }
  std::map<std::string, long> sums_;
  std::vector<std::string> lines_;
  long added_ = 0;
};

/// Two that are parts of one, and are called by themselves. The first has the address of the whole.
struct both {
  tally one;
  tally other;
  long sum(int key) const { return one.get(key) + other.get(key); }
};

// ---- A program ----------------------------------------------------------------------------------

constexpr std::size_t objects_most = 6;

bool traces = false;

enum class role : std::uint8_t { read, changed_by_one, changed_by_all };

struct object {
  bool is_notes = false;
  global_ptr<tally> tallied;
  global_ptr<notes> noted;
  global_ptr<both> whole;  ///< If it is a part of one.
  role is = role::read;
  rank_t by = 0;                      ///< Who changes it.
  std::array<long, keys> before{};    ///< What it holds when the phase begins …
  std::array<long, keys> after{};     ///< … and when it has ended.
  std::array<long, keys> mine{};      ///< Of what this rank adds: what it has added, …
  std::array<long, keys> begun{};     ///< … what it has begun to add, …
  std::array<long, keys> expected{};  ///< … and all that it is going to add.
};

enum class action : std::uint8_t {
  get,
  get_slowly,
  text,
  sum,
  add,
  add_slowly,
  add_later,  ///< A future, which is waited for at the end of the phase.
  walk,
  fix,
  unfix,
  attach,
  detach
};
constexpr u64 actions = 12;

struct step {
  action what = action::get;
  std::size_t on = 0;
  std::size_t other = 0;
  int key = 0;
  long n = 0;
  via how = via::rpc;
};

via word_of(u64 number) {
  constexpr std::array words{via::rpc,   via::migrate,   via::cache,
                             via::fetch, via::automatic, via::unsaid};
  return words[number % words.size()];
}

bool changes(action a) {
  return a == action::add || a == action::add_slowly || a == action::add_later;
}

bool may_change(const object& o, rank_t rank) {
  return o.is == role::changed_by_all || (o.is == role::changed_by_one && o.by == rank);
}

/// The calls of a rank in a phase.
std::vector<step> steps_of(u64 seed, u64 phase, rank_t rank, const std::vector<object>& all) {
  draws draw(mix(mix(seed, phase + 100), static_cast<u64>(rank) + 7));
  std::vector<step> steps(draw(10));
  for (step& s : steps) {
    s.what = static_cast<action>(draw(actions));
    s.on = draw(all.size());
    s.other = draw(all.size());
    s.key = static_cast<int>(draw(keys));
    s.n = static_cast<long>(draw(20)) + 1;
    s.how = word_of(draw(6));
    if (changes(s.what) && !may_change(all[s.on], rank)) s.what = action::get;
  }
  return steps;
}

/// Where a walk goes, and by which words: all that its frames have, so that it can migrate.
struct route {
  std::array<global_ptr<tally>, objects_most> stops;
  u64 count;
  u64 draws;
  int key;
};
/// The sum of what it reads; -1 when an object is not as it should be.
long walk(route r, int hops) {
  long sum = 0;
  for (int i = 0; i < hops; ++i) {
    r.draws = mix(r.draws, 3);
    const auto stop = r.stops[r.draws % r.count];
    const long seen = stop.call<&tally::get>(word_of(r.draws / 16), r.key);
    if (seen < 0) return -1;
    sum += seen;
  }
  return sum;
}

class program {
 public:
  explicit program(u64 seed) : seed_(seed), draw_(seed) {}

  /// Collective. False when this rank has seen what cannot be.
  bool run() {
    make_objects();
    const u64 phases = 1 + draw_(4);
    for (u64 phase = 0; phase < phases; ++phase) {
      begin(phase);
      barrier();
      for (const step& s : steps_of(seed_, phase, rank_me(), all_)) perform(s);
      for (later& l : later_) finish(l);
      later_.clear();
      barrier();
      for (object& o : all_) o.before = o.after;
      if (draw_(3) == 0) make_anew();
    }
    check_all();
    barrier();
    destroy_objects();
    barrier();
    return is_right_;
  }

 private:
  struct later {
    future<long> of;
    step what;
  };

  rank_t some_rank() { return static_cast<rank_t>(draw_(static_cast<u64>(rank_count()))); }

  template <class T>
  global_ptr<T> made_on(rank_t rank) {
    global_ptr<T> p;
    if (rank_me() == rank) p = make<T>(rank);
    return broadcast(p, rank);
  }

  void make_objects() {
    const u64 count = 1 + draw_(objects_most);
    while (all_.size() < count) {
      object made;
      switch (draw_(4)) {
        case 0:
          made.is_notes = true;
          made.noted = made_on<notes>(some_rank());
          break;
        case 1:
          if (all_.size() + 2 > count) continue;
          made.whole = made_on<both>(some_rank());
          made.tallied = reinterpret_pointer_cast<tally>(made.whole);
          all_.push_back(made);
          ++made.tallied;
          break;
        default:
          made.tallied = made_on<tally>(some_rank());
      }
      all_.push_back(made);
    }
  }

  void destroy_object(const object& o) {
    if (o.is_notes) return destroy(o.noted);
    if (!o.whole) return destroy(o.tallied);
  }
  void destroy_objects() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (static_cast<rank_t>(i) % rank_count() != rank_me()) continue;
      destroy_object(all_[i]);
      if (all_[i].whole && i + 1 < all_.size() && all_[i + 1].whole == all_[i].whole)
        destroy(all_[i].whole);
    }
  }
  /// One is destroyed, and another probably made in its place.
  void make_anew() {
    object& o = all_[draw_(all_.size())];
    const rank_t destroyer = some_rank();
    const rank_t maker = some_rank();
    if (o.whole) return;
    if (rank_me() == destroyer) destroy_object(o);
    barrier();
    if (o.is_notes) {
      o.noted = made_on<notes>(maker);
    } else {
      o.tallied = made_on<tally>(maker);
    }
    o.before = {};
  }

  void begin(u64 phase) {
    for (object& o : all_) {
      o.is = static_cast<role>(draw_(3));
      o.by = some_rank();
      o.after = o.before;
      o.mine = o.begun = o.expected = {};
    }
    for (rank_t rank = 0; rank < rank_count(); ++rank) {
      for (const step& s : steps_of(seed_, phase, rank, all_)) {
        if (!changes(s.what)) continue;
        object& o = all_[s.on];
        o.after[static_cast<std::size_t>(s.key)] += s.n;
        if (rank == rank_me()) o.expected[static_cast<std::size_t>(s.key)] += s.n;
      }
    }
  }

  /// What a call that begins now may read at most, and at least.
  long least(const object& o, int key) const {
    const auto k = static_cast<std::size_t>(key);
    return o.before[k] + o.mine[k];
  }
  long most(const object& o, int key) const {
    const auto k = static_cast<std::size_t>(key);
    return o.after[k] - (o.expected[k] - o.begun[k]);
  }

  void expect(long least_value, long value, long most_value, const step& s) {
    if (least_value <= value && value <= most_value) return;
    is_right_ = false;
    std::fprintf(stderr,
                 "words: seed %llu, rank %d: action %d of object %zu, key %d, by word %d: %ld, "
                 "and not between %ld and %ld\n",
                 static_cast<unsigned long long>(seed_), rank_me(), static_cast<int>(s.what), s.on,
                 s.key, static_cast<int>(s.how.how()), value, least_value, most_value);
  }

  template <auto OfTally, auto OfNotes, class... A>
  long call(const object& o, via how, A... arguments) {
    if (o.is_notes) return o.noted.call<OfNotes>(how, arguments...);
    return o.tallied.call<OfTally>(how, arguments...);
  }

  void finish(later& l) {
    l.of.get();
    all_[l.what.on].mine[static_cast<std::size_t>(l.what.key)] += l.what.n;
  }

  void trace(const step& s) const {
    constexpr std::array names{"get",       "get_slowly", "text", "sum",   "add",    "add_slowly",
                               "add_later", "walk",       "fix",  "unfix", "attach", "detach"};
    const object& o = all_[s.on];
    const auto word = static_cast<unsigned>(s.how.how());
    std::fprintf(stderr, "rank %d: %s of %s %zu at rank %d, key %d, n %ld, word %u%s, other %zu\n",
                 rank_me(), names[static_cast<std::size_t>(s.what)],
                 o.is_notes ? "notes"
                 : o.whole  ? "part"
                            : "tally",
                 s.on, o.is_notes ? o.noted.home() : o.tallied.home(), s.key, s.n, word,
                 s.how.is_unsaid() ? " (unsaid)" : "", s.other);
  }

  void perform(const step& s) {
    if (traces) trace(s);
    object& o = all_[s.on];
    const auto k = static_cast<std::size_t>(s.key);
    const long least_before = least(o, s.key);
    switch (s.what) {
      case action::get:
        return expect(least_before, call<&tally::get, &notes::get>(o, s.how, s.key), most(o, s.key),
                      s);
      case action::get_slowly:
        return expect(least_before, call<&tally::get_slowly, &notes::get_slowly>(o, s.how, s.key),
                      most(o, s.key), s);
      case action::text: {
        if (!o.is_notes) return;
        const std::string before(s.n % 5 == 0 ? 100 : 1, '0');
        const std::string text = o.noted.call<&notes::text>(s.how, before, s.key);
        return expect(least_before, std::stol(text), most(o, s.key), s);
      }
      case action::sum: {
        if (!o.whole) return;
        const std::size_t first = s.on > 0 && all_[s.on - 1].whole == o.whole ? s.on - 1 : s.on;
        const object& one = all_[first];
        const object& other = all_[first + 1];
        const long least_sum = least(one, s.key) + least(other, s.key);
        return expect(least_sum, o.whole.call<&both::sum>(s.how, s.key),
                      most(one, s.key) + most(other, s.key), s);
      }
      case action::add:
      case action::add_slowly: {
        o.begun[k] += s.n;
        const long sum = s.what == action::add
                             ? call<&tally::add, &notes::add>(o, s.how, s.key, s.n)
                             : call<&tally::add_slowly, &notes::add_slowly>(o, s.how, s.key, s.n);
        o.mine[k] += s.n;
        return expect(least_before + s.n, sum, most(o, s.key), s);
      }
      case action::add_later:
        o.begun[k] += s.n;
        later_.push_back({o.is_notes ? o.noted.async<&notes::add>(s.key, s.n)
                                     : o.tallied.async<&tally::add>(s.key, s.n),
                          s});
        return;
      case action::walk:
        return perform_walk(s);
      case action::fix:
        return o.is_notes ? fix(o.noted) : fix(o.tallied);
      case action::unfix:
        return o.is_notes ? unfix(o.noted) : unfix(o.tallied);
      case action::attach:
      case action::detach: {
        const object& other = all_[s.other];
        if (s.on == s.other || o.is_notes || other.whole) return;
        if (s.what == action::detach)
          return other.is_notes ? detach(o.tallied, other.noted) : detach(o.tallied, other.tallied);
        return other.is_notes ? attach(o.tallied, other.noted) : attach(o.tallied, other.tallied);
      }
    }
  }

  void perform_walk(const step& s) {
    route r{.stops = {}, .count = 0, .draws = static_cast<u64>(s.n) * 77 + s.on, .key = s.key};
    std::array<const object*, objects_most> stops{};
    for (const object& o : all_) {
      if (o.is_notes) continue;
      stops[r.count] = &o;
      r.stops[r.count++] = o.tallied;
    }
    if (r.count == 0) return;
    constexpr int hops = 5;
    long least_sum = 0;
    u64 drawn = r.draws;
    std::array<u64, hops> visited{};
    for (u64& v : visited) {
      drawn = mix(drawn, 3);
      v = drawn % r.count;
      least_sum += least(*stops[v], s.key);
    }
    const long sum = activate(walk, r, hops);
    long most_sum = 0;
    for (const u64 v : visited) most_sum += most(*stops[v], s.key);
    expect(least_sum, sum, most_sum, s);
  }

  void check_all() {
    const u64 checker = mix(seed_, 99);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      object& o = all_[i];
      if (rank_me() != static_cast<rank_t>((checker + i) % static_cast<u64>(rank_count())))
        continue;
      for (int key = 0; key < keys; ++key) {
        const long value = o.before[static_cast<std::size_t>(key)];
        const step s{action::get, i, 0, key, 0, word_of(checker / 8 + static_cast<u64>(key))};
        expect(value, call<&tally::get, &notes::get>(o, s.how, key), value, s);
      }
    }
  }

  u64 seed_;
  draws draw_;
  std::vector<object> all_;
  std::vector<later> later_;
  bool is_right_ = true;
};

// ---- The options --------------------------------------------------------------------------------

[[noreturn]] void usage() {
  std::fprintf(stderr, "usage: words [--seed S] [--programs N] [--limit SECONDS] [--trace 1]\n");
  std::exit(2);
}

u64 number(const char* text) {
  const std::optional<u64> value = seeded::number_in(text);
  if (!value) usage();
  return *value;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [=]() -> int {
    u64 seed = 1;
    u64 programs = 1;
    for (int i = 1; i < argc; i += 2) {
      const std::string_view option = argv[i];
      if (i + 1 == argc) usage();
      if (option == "--seed") {
        seed = number(argv[i + 1]);
      } else if (option == "--programs") {
        programs = number(argv[i + 1]);
      } else if (option == "--limit") {
        seeded::limit_seconds = static_cast<unsigned>(number(argv[i + 1]));
      } else if (option == "--trace") {
        traces = number(argv[i + 1]) != 0;
      } else {
        usage();
      }
    }
    seeded::watch("words");
    for (u64 i = 0; i < programs; ++i) {
      seeded::begin(seed + i);
      const bool is_right = program(seed + i).run();
      if (!reduce(is_right ? 1 : 0, [](int a, int b) { return a < b ? a : b; })) return 1;
    }
    return 0;
  });
}
