// SPDX-License-Identifier: Apache-2.0
#include "object/call_places.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <unordered_map>
#include <utility>

#include "fiber/piece.hpp"
#include "fiber/scheduler.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/outbound.hpp"
#include "object/automatic/place_costs.hpp"
#include "object/objects_of_rank.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/rank.hpp"

namespace sojourn::detail {

namespace {

using way = place_costs::way;

/// What ways cost, in calls to the owner (docs/automatic.md). Between ranks of a host the work of
/// the processor counts, as `sojourn bench policies` measures it; between hosts, the messages.
struct prices {
  double migration;
  double end_elsewhere;  ///< The result of an activation that has left goes home by a message.
  double copy;
  double invalidation;
  double fetch;
  double kibibyte;        ///< Of the object, for a copy and for a fetch.
  double call_from_home;  ///< Of an object that is here, and would be at home otherwise.
  double refused;
};
constexpr prices prices_on_host{.migration = 0.95,
                                .end_elsewhere = 0.5,
                                .copy = 2.5,
                                .invalidation = 1.5,
                                .fetch = 5,
                                .kibibyte = 1,
                                .call_from_home = 1,
                                .refused = 3};
constexpr prices prices_between_hosts{.migration = 0.55,
                                      .end_elsewhere = 0.5,
                                      .copy = 1,
                                      .invalidation = 1,
                                      .fetch = 2,
                                      .kibibyte = 0.1,
                                      .call_from_home = 1,
                                      .refused = 2};
const prices& prices_of(int rank) { return is_near(rank) ? prices_on_host : prices_between_hosts; }

struct place_record : call_place {
  place_record(std::uint64_t at, const possible_ways& possible)
      : costs(possible.can_migrate, possible.bringing != via::mechanism::rpc),
        method(possible.method),
        bringing(possible.bringing) {
    code = at;
    plan();
  }

  void plan() {
    // While an object is away, its home looks for all objects near its place before it calls them.
    const std::int32_t most = open_objects != 0 ? soon : std::numeric_limits<std::int32_t>::max();
    planned = left = static_cast<std::int32_t>(
        std::min<std::uint32_t>(costs.calls_until_next(), static_cast<std::uint32_t>(most)));
  }
  static constexpr std::int32_t soon = 8;
  /// Calls that were made as was planned. None when choose_way() has found none left: then they are
  /// counted already.
  std::uint32_t made() const { return static_cast<std::uint32_t>(left < 0 ? 0 : planned - left); }

  via way_of(way w) const {
    switch (w) {
      case way::migrate:
        return via::automatic;
      case way::bring:
        return (bringing == via::mechanism::fetch ? via::fetch : via::cache).as_chosen();
      default:
        return via::rpc;
    }
  }
  /// In `calls`.
  static std::size_t index_of(via v) {
    return static_cast<std::size_t>(v.how() == via::mechanism::automatic ? via::mechanism::migrate
                                                                         : v.how());
  }

  place_costs costs;
  const char* method;
  via::mechanism bringing;
  std::int32_t planned;
  std::uint32_t passed = 0;  ///< Calls before those, since it was looked at.
  std::array<std::uint64_t, 4> calls{};
  /// A copy or an object that came as a trial, and may be here yet.
  struct trial {
    std::uint64_t address = 0;
    std::uint32_t uses = 0;  ///< When it was looked at last; an object comes with the first one.
    bool is_judged = false;
    unsigned sent_home = 0;  ///< How often home was asked to take it back.
  };
  std::array<trial, 8> tried{};
  unsigned open = 0;          ///< A bit for each of those which are not over.
  unsigned open_objects = 0;  ///< The bits of those that brought the object itself.
  unsigned next_tried = 0;
};

call_place no_place;

std::deque<place_record> records;
/// What places come to that say a word, when that is counted. (Another time the same place may
/// choose: the word need not be a constant.)
struct said_record {
  const char* method;
  via::mechanism written;
  via::mechanism follows;  ///< The word at the access, or SOJOURN_VIA's.
  std::array<std::uint64_t, 4> calls{};
};
std::unordered_map<std::uint64_t, said_record> said_records;
/// What the program says at places that choose because SOJOURN_VIA says so.
std::unordered_map<std::uint64_t, via::mechanism> words_written;
std::unordered_map<std::uint64_t, std::uint32_t> numbers;  ///< By code: an index, plus 1.

place_record* find_record(std::uint64_t code) {
  const auto known = numbers.find(code);
  return known == numbers.end() ? nullptr : &records[known->second - 1];
}
place_record& record_of(std::uint64_t code, const possible_ways& possible) {
  if (place_record* const known = find_record(code)) return *known;
  numbers.emplace(code, static_cast<std::uint32_t>(records.size()) + 1);
  return records.emplace_back(code, possible);
}
place_record* record_of_number(std::uint32_t number) {
  return number == 0 || number > records.size() ? nullptr : &records[number - 1];
}

/// The calls that were made so far as place.now says are counted, and `left` more are planned.
void plan_anew(place_record& place, std::int32_t left) {
  place.calls[place_record::index_of(place.now)] += place.made();
  place.passed += place.made();
  place.left = place.planned = left;
}

void learn(place_record& place, way of, double cost, double calls) {
  place.costs.learn(of, cost, calls);
  const via now = place.way_of(place.costs.now());
  if (now == place.now) return;
  plan_anew(place, place.left < 0 ? place.planned : place.left);
  place.take(now);
}

// ---- Migrations --------------------------------------------------------------------------------

/// Tells the rank from which an activation has come what that has cost.
struct way_cost_message {
  std::uint64_t code;
  float cost;
  float calls;
};

struct {
  std::uint64_t code;
  int from;
  std::uint64_t methods_before;  ///< Calls of objects that were here, until it came.
  std::uint64_t methods_after;   ///< Until its first call had ended.
  std::uint64_t switches;        ///< Until then.
  unsigned others;               ///< Landings since then that were not watched.
} watched;
std::uint64_t methods_so_far() { return counts.methods >> method_guard::depth_bits; }

const mark* no_mark() { return reinterpret_cast<const mark*>(std::uintptr_t{1}); }
void end_watch() { last_landing = {no_mark(), &watched}; }

/// What the watched activation has done since it came. Nothing is known when it was suspended,
/// because what others called meanwhile was counted, too.
void tell_of_landing(double cost) {
  end_watch();
  if (counts.switches != watched.switches || watched.methods_after <= watched.methods_before)
    return;
  const auto first = static_cast<double>(watched.methods_after - watched.methods_before);
  const auto all = static_cast<double>(methods_so_far() - watched.methods_before);
  const way_cost_message told{watched.code, static_cast<float>(cost),
                              static_cast<float>(all / first)};
  send_reply(watched.from, runtime_message::way_cost, 0, 0, &told, sizeof told);
}

void on_way_cost(arrival& a, const way_cost_message& m) {
  const bool is_well_formed = std::isfinite(m.cost) && std::isfinite(m.calls) && m.cost >= 0;
  if (!is_well_formed) refuse_arrival(a, "tells of no cost that there can be");
  if (place_record* const place = find_record(m.code))
    learn(*place, way::migrate, static_cast<double>(m.cost), static_cast<double>(m.calls));
  wire().consume(a);
}

/// Only what the program has opened as an activation migrates; the gate looks closer.
bool is_in_activation() {
  if (may_have_forks()) return false;
  if (running.youngest != nullptr) return running.youngest->kind == mark_kind::activation;
  const piece* const p = running_piece();
  return p != nullptr && running.base != nullptr &&
         reinterpret_cast<std::uint64_t>(running.base) != p->hi;
}

// ---- Copies ------------------------------------------------------------------------------------

/// Null: the copy or object that came for this place is not here any more, or has been judged.
copy_block* unjudged(const place_record& place, std::uint64_t address) {
  copy_block* const block = objects_here->copy_of(address);
  return block != nullptr && record_of_number(block->asked_at) == &place ? block : nullptr;
}
void judge(copy_block* block) {
  note_use_end(*block, use_end::goes_on);
  block->asked_at = 0;
}

/// An object goes home after a trial, unless objects should come, as far as is known. Otherwise
/// trials would gather more and more objects where most calls are made, and have even more made
/// there. False: it is not here any more, or stays for good. (It cannot leave during a method.)
bool is_sent_home(const place_record& place, place_record::trial& t) {
  constexpr unsigned often_enough = 8;
  const copy_block* const block = objects_here->copy_of(t.address);
  if (block == nullptr || !block->is_object || place.costs.now() == way::bring) return false;
  if (place.costs.should_bring()) return true;  // after more trials it will be known
  if (++t.sent_home > often_enough) return false;
  objects_here->give_back(t.address);
  return true;
}

/// What is known by now of this trial. False: it is over.
bool goes_on(const place_record& place, place_record::trial& t) {
  if (t.is_judged) return is_sent_home(place, t);
  copy_block* const block = unjudged(place, t.address);
  if (block == nullptr) return false;
  const std::uint32_t before = std::exchange(t.uses, block->uses);
  const bool is_idle = block->is_object && block->uses == before;
  if (block->uses < place_costs::most_calls && !is_idle) return true;
  judge(block);
  t.is_judged = true;
  return is_sent_home(place, t);
}
void look_at_trials(place_record& place) {
  for (unsigned left = place.open; left != 0; left &= left - 1) {
    if (goes_on(place, place.tried[static_cast<std::size_t>(std::countr_zero(left))])) continue;
    const unsigned bit = left & -left;
    place.open &= ~bit;
    place.open_objects &= ~bit;
  }
}

}  // namespace

call_place* call_places[1u << place_bits];
watched_landing last_landing{nullptr, &watched};

via choose_way_slowly(std::uint64_t code, int owner, const possible_ways& possible) {
  if (running.youngest == nullptr && running.base == last_landing.base) {
    const prices& price = prices_of(watched.from);
    tell_of_landing(price.migration + (owner == watched.from ? std::min(1.0, price.migration) : 0));
  }
  call_place*& slot = slot_of_place(code);
  place_record& place =
      slot->code == code ? static_cast<place_record&>(*slot) : record_of(code, possible);
  slot = &place;
  if (place.left > 0) {
    --place.left;
    return place.now;
  }
  place.left = -1;
  // `left` calls were made as place.now says, and this one is looked at.
  place.calls[place_record::index_of(place.now)] += static_cast<std::uint32_t>(place.planned);
  look_at_trials(place);
  way next = place.costs.next(std::exchange(place.passed, 0) +
                              static_cast<std::uint32_t>(place.planned) + 1);
  if (next == way::migrate && !is_in_activation()) next = way::rpc;
  via taken = place.way_of(next);
  if (next == way::migrate) taken = taken.as_chosen();
  ++place.calls[place_record::index_of(taken)];
  place.take(place.way_of(place.costs.now()));
  place.plan();
  return taken;
}

void watch_landing(std::uint64_t code, int from) {
  if (running.youngest != nullptr) return;
  constexpr unsigned long_ago = 32;
  const bool is_busy = last_landing.youngest == nullptr && running.base != last_landing.base;
  if (is_busy && ++watched.others < long_ago) return;
  last_landing = {nullptr, running.base};
  watched = {code, from, methods_so_far(), 0, 0, 0};
}
watched_call::~watched_call() {
  if (running.base != last_landing.base || watched.methods_after != 0) return;
  watched.methods_after = methods_so_far();
  watched.switches = counts.switches;
}
void landing_ended() {
  const prices& price = prices_of(watched.from);
  const bool was_at_home = home_of(running_result()) == watched.from;
  tell_of_landing(price.migration + (was_at_home ? price.end_elsewhere : 0));
}
void note_migration_refused(std::uint64_t code, int owner) {
  if (place_record* const place = find_record(code))
    learn(*place, way::migrate, prices_of(owner).refused, 1);
}

std::uint32_t number_of_place(std::uint64_t code) {
  const auto known = numbers.find(code);
  return known == numbers.end() ? 0 : known->second;
}

void note_copy(copy_block* block, std::uint64_t code) {
  if (block->asked_at != 0) return;
  block->asked_at = number_of_place(code);
  place_record* const place = record_of_number(block->asked_at);
  // Objects that come because they should are judged when they leave.
  if (place == nullptr || (block->is_object && place->costs.now() == way::bring)) return;
  place_record::trial& t = place->tried[place->next_tried];
  const unsigned bit = 1u << place->next_tried;
  place->next_tried = (place->next_tried + 1) % place->tried.size();
  if ((place->open & bit) != 0) {
    copy_block* const oldest = unjudged(*place, t.address);
    if (oldest != nullptr && oldest != block) {
      judge(oldest);
      (void)is_sent_home(*place, t);
    }
  }
  t = {.address = block->address, .uses = 1};
  place->open |= bit;
  place->open_objects = block->is_object ? place->open_objects | bit : place->open_objects & ~bit;
  if (block->is_object && place->left > place_record::soon) plan_anew(*place, place_record::soon);
}

void note_use_end(const copy_block& block, use_end how) {
  place_record* const place = record_of_number(block.asked_at);
  if (place == nullptr) return;
  const prices& price = prices_of(owner_of(block.address));
  const double cost = block.is_object
                          ? price.fetch + block.away_from_home * price.call_from_home
                          : price.copy + (how == use_end::given_up ? price.invalidation : 0);
  learn(*place, way::bring, cost + (block.bytes + block.read_length) / 1024.0 * price.kibibyte,
        block.uses);
}
void note_left_home(std::uint32_t asked_at, std::uint32_t uses) {
  if (place_record* const place = record_of_number(asked_at))
    learn(*place, way::bring, prices_on_host.fetch, uses);
}
void note_bringing_refused(std::uint64_t code) {
  place_record* const place = find_record(code);
  if (place != nullptr) learn(*place, way::bring, 1.5, 1);
}

bool works_on_its_own_objects() {
  struct window {
    std::uint64_t methods;  ///< Calls of objects that are here, and were made here.
    std::uint64_t others;   ///< What came from other ranks: calls, results, activations.
  };
  static window began;
  static bool answer = false;
  constexpr std::uint64_t enough_others = 64;
  // Each call of an object of this rank would cost some 50 instructions more, and what comes from
  // another rank costs some 500.
  constexpr std::uint64_t many_methods = 32;
  const window now{methods_so_far() - counts.cache_hits - calls_of_guests,
                   counts.handlers_run + counts.switches};
  const std::uint64_t others = now.others - began.others;
  const std::uint64_t methods = now.methods - began.methods;
  if (others < enough_others && began.others != 0) return answer;
  answer = methods > many_methods * std::max<std::uint64_t>(others, 1);
  if (others >= enough_others) began = now;
  return answer;
}

void note_said(std::uint64_t code, const char* method, via written, via how) {
  if (how.how() == via::mechanism::automatic) {  // choose_way_slowly() counts it
    if (written != how) words_written[code] = written.how();
    return;
  }
  said_record& place =
      said_records.try_emplace(code, said_record{method, written.how(), how.how(), {}})
          .first->second;
  ++place.calls[static_cast<std::size_t>(how.how())];
}

std::vector<call_place_use> call_place_uses() {
  std::vector<call_place_use> uses;
  for (const auto& [code, place] : said_records) {
    call_place_use use{};
    use.code = code;
    use.method = place.method;
    use.said = place.written;
    use.now = place.follows;
    use.cost_of_migrating = use.cost_of_bringing = -1;
    std::copy(place.calls.begin(), place.calls.end(), use.calls);
    uses.push_back(use);
  }
  for (const place_record& place : records) {
    const auto written = words_written.find(place.code);
    call_place_use use{};
    use.code = place.code;
    use.method = place.method;
    use.said = written == words_written.end() ? via::mechanism::automatic : written->second;
    use.now = static_cast<via::mechanism>(place_record::index_of(place.way_of(place.costs.now())));
    use.chooses = true;
    use.bringing = place.bringing;
    use.cost_of_migrating = place.costs.cost_of(way::migrate);
    use.cost_of_bringing = place.costs.cost_of(way::bring);
    use.calls_a_migration = place.costs.calls_a_trial(way::migrate);
    use.calls_a_bringing = place.costs.calls_a_trial(way::bring);
    use.changes = place.costs.changes();
    std::copy(place.calls.begin(), place.calls.end(), use.calls);
    use.calls[place_record::index_of(place.now)] += place.made();
    uses.push_back(use);
  }
  const auto calls_of = [](const call_place_use& u) {
    return u.calls[0] + u.calls[1] + u.calls[2] + u.calls[3];
  };
  std::erase_if(uses, [&](const call_place_use& u) { return calls_of(u) == 0; });
  std::sort(uses.begin(), uses.end(),
            [&](const auto& a, const auto& b) { return calls_of(a) > calls_of(b); });
  return uses;
}

void attach_call_places() {
  std::fill(std::begin(call_places), std::end(call_places), &no_place);
  end_watch();
  on_message<way_cost_message, on_way_cost>(runtime_message::way_cost);
}

}  // namespace sojourn::detail
