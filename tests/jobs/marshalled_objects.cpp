// SPDX-License-Identifier: Apache-2.0
// Objects that own memory, copied (via::cache) and moved (via::fetch): they are marshalled.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

/// Counts how many there are on this rank, and whether each is destroyed once.
struct counted {
  static inline long alive = 0;
  counted() { ++alive; }
  counted(const counted&) { ++alive; }
  counted& operator=(const counted&) = default;
  ~counted() { --alive; }
  template <class Archive>
  void serialize(Archive&) {}
};

class directory {
 public:
  void enter(const std::string& name, long number) {
    numbers_[name] = number;
    names_.push_back(name);
  }
  long number_of(const std::string& name) const {
    const auto known = numbers_.find(name);
    return known == numbers_.end() ? -1 : known->second;
  }
  std::string last_name() const { return names_.empty() ? "" : names_.back(); }
  std::size_t count() const {
    CHECK(names_.size() >= numbers_.size());
    return names_.size();
  }
  std::vector<std::string> names() const { return names_; }
  void grow(std::size_t bytes) { text_.assign(bytes, 'x'); }
  std::size_t text_length() const { return text_.size(); }
  rank_t rank() const { return rank_me(); }
  global_ptr<const directory> self() const { return global_ptr<const directory>(this); }
  std::size_t longer_than(const std::vector<long>& numbers) const {
    return numbers.size() - names_.size();
  }
  /// Waits until another call has entered `name`, and reads on.
  long wait_for(const std::string& name) const {
    while (number_of(name) < 0) yield();
    return number_of(name);
  }
  /// Waits while it reads what nobody changes.
  std::size_t length_of_names() const {
    std::size_t length = 0;
    for (const std::string& name : names_) {
      yield();
      length += name.size();
    }
    return length;
  }

  template <class Archive>
  void serialize(Archive& ar) {
    ar(numbers_, names_, text_, alive_);
  }

 private:
  std::map<std::string, long> numbers_;
  std::vector<std::string> names_;
  std::string text_;
  counted alive_;
};

template <class T, class... A>
global_ptr<T> made_on(rank_t rank, A... a) {
  global_ptr<T> p;
  if (rank_me() == rank) p = make<T>(rank, a...);
  return broadcast(p, rank);
}
template <class T>
void destroy_by_all(global_ptr<T> p) {
  barrier();
  if (rank_me() == p.home()) destroy(p);
  barrier();
}
rank_t last() { return rank_count() - 1; }

void copies_cost_no_message_when_they_are_here() {
  auto p = made_on<directory>(last());
  if (rank_me() == 0) p.call<&directory::enter>("one", 1L);
  barrier();
  // In checked mode the first call runs at the owner.
  for (int i = 0; i < 2; ++i) CHECK_EQUAL(p.call<&directory::last_name>(via::cache), "one");
  const counters before = counters_now();
  for (int i = 0; i < 100; ++i) {
    CHECK_EQUAL(p.call<&directory::last_name>(via::cache), "one");
    CHECK_EQUAL(p.call<&directory::number_of>(via::cache, "one"), 1);
    CHECK_EQUAL(p.call<&directory::number_of>(via::cache, "two"), -1);
    CHECK(p.call<&directory::self>(via::cache) == p);
    CHECK_EQUAL(p.call<&directory::rank>(via::cache), rank_me());
  }
  CHECK_EQUAL((counters_now() - before).messages(), 0);
  destroy_by_all(p);
}

void reads_after_a_write_see_it() {
  auto p = made_on<directory>(last());
  const via words[] = {via::rpc, via::cache, via::fetch, via::automatic};
  for (int round = 0; round < 40; ++round) {
    const std::string name = "name " + std::to_string(round) + " of a directory";
    if (rank_me() == round % rank_count())
      p.call<&directory::enter>(words[round % 4], name, static_cast<long>(round));
    barrier();
    CHECK_EQUAL(p.call<&directory::last_name>(via::cache), name);
    CHECK_EQUAL(p.call<&directory::number_of>(words[(round / 4) % 4], name), round);
    CHECK_EQUAL(p.call<&directory::count>(via::cache), static_cast<std::size_t>(round) + 1);
    barrier();
  }
  CHECK_EQUAL(p.call<&directory::names>(via::rpc).size(), 40u);
  destroy_by_all(p);
}

void objects_move_and_come_home() {
  const long before = counted::alive;
  auto p = made_on<directory>(0);
  const counters begun = counters_now();
  for (rank_t turn = 0; turn < rank_count(); ++turn) {
    if (rank_me() == turn) {
      for (int i = 0; i < 30; ++i)
        p.call<&directory::enter>(via::fetch, "rank " + std::to_string(turn), static_cast<long>(i));
    }
    barrier();
    CHECK_EQUAL(p.call<&directory::count>(via::rpc), 30u * (static_cast<std::size_t>(turn) + 1));
    barrier();
  }
  // In checked mode its home runs the first call.
  if (!detail::checked() && rank_count() > 1 && rank_me() != 0)
    CHECK((counters_now() - begun).objects_moved > 0);
  destroy_by_all(p);
  if (rank_me() == 0) CHECK_EQUAL(counted::alive, before);
  CHECK(counted::alive - before < 70);  // old copies are freed in groups
}

void a_method_that_waits_on_a_copy_sees_what_comes() {
  auto p = made_on<directory>(last());
  CHECK_EQUAL(p.call<&directory::number_of>(via::cache, "late"), -1);
  CHECK_EQUAL(p.call<&directory::number_of>(via::cache, "late"), -1);
  barrier();
  auto waits = fork([p] { return p.call<&directory::wait_for>(via::cache, "late"); });
  barrier();
  if (rank_me() == 0) p.call<&directory::enter>("late", 7L);
  CHECK_EQUAL(waits.get(), 7);
  destroy_by_all(p);
}

/// The test gives copies 1 MB.
void a_copy_that_makes_room_is_read_on() {
  auto p = made_on<directory>(last());
  constexpr int names = 50;
  if (rank_me() == 0) {
    for (int i = 0; i < names; ++i)
      p.call<&directory::enter>(std::string(60, static_cast<char>('a' + i % 26)), 1L);
  }
  barrier();
  std::vector<global_ptr<directory>> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(made_on<directory>(last()));
    if (rank_me() == 0) others.back().call<&directory::grow>(std::size_t{200'000});
  }
  barrier();
  for (int round = 0; round < 3; ++round) {
    auto waits = fork([p] { return p.call<&directory::length_of_names>(via::cache); });
    for (auto other : others)
      CHECK_EQUAL(other.call<&directory::text_length>(via::cache), 200'000u);
    CHECK_EQUAL(waits.get(), 60u * names);
  }
  if (rank_me() != last()) CHECK(counters_now().copies_evicted > 0);
  destroy_by_all(p);
  for (auto other : others) destroy_by_all(other);
}

void objects_too_long_to_copy_are_called_at_their_owner() {
  auto p = made_on<directory>(last());
  if (rank_me() == 0) p.call<&directory::grow>(std::size_t{3'000'000});
  barrier();
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(p.call<&directory::rank>(via::cache), last());
    CHECK_EQUAL(p.call<&directory::text_length>(via::fetch), 3'000'000u);
  }
  barrier();
  if (rank_me() == 0) p.call<&directory::enter>(via::fetch, "here", 1L);
  barrier();
  CHECK_EQUAL(p.where(), last());
  barrier();
  // One that grows elsewhere comes home all the same.
  if (rank_me() == 0) {
    p.call<&directory::grow>(std::size_t{10});
    p.call<&directory::enter>(via::fetch, "here", 1L);
    p.call<&directory::grow>(via::fetch, std::size_t{2'000'000});
  }
  destroy_by_all(p);
}

struct unsaved {
  std::string text;  // so that its bytes are not all there is to it
  long value = 0;
  void add(long n) { value += n; }
  long get() const { return value; }
  template <class Archive>
  void save(Archive&) const {
    throw std::runtime_error("this cannot be saved");
  }
  template <class Archive>
  void load(Archive&) {}
};
void objects_whose_save_throws_are_called_at_their_owner() {
  auto p = made_on<unsaved>(last());
  for (int i = 0; i < 10; ++i) {
    p.call<&unsaved::add>(via::fetch, 1L);
    CHECK(p.call<&unsaved::get>(via::cache) >= i + 1);
  }
  barrier();
  CHECK_EQUAL(p.call<&unsaved::get>(via::cache), 10 * rank_count());
  CHECK_EQUAL(p.where(), last());
  destroy_by_all(p);
}

void long_arguments_of_calls_on_copies_arrive() {
  auto p = made_on<directory>(last());
  for (int i = 0; i < 4; ++i) {
    std::vector<long> numbers(std::size_t{1} << 20);  // they stay here until they are read
    CHECK_EQUAL(p.call<&directory::longer_than>(via::cache, numbers), numbers.size());
  }
  destroy_by_all(p);
}

struct shape {
  virtual ~shape() = default;
  virtual std::string name() const { return "shape"; }
  template <class Archive>
  void serialize(Archive&) {}
};
struct circle final : shape {
  std::string name() const override { return "circle"; }
};
void virtual_functions_are_those_of_the_object() {
  global_ptr<circle> p = made_on<circle>(last());
  const auto as_base = static_pointer_cast<shape>(p);
  for (int i = 0; i < 4; ++i) {
    CHECK_EQUAL(as_base.call<&shape::name>(via::cache), "circle");
    CHECK_EQUAL(p.call<&circle::name>(via::cache), "circle");
    CHECK_EQUAL(as_base.call<&shape::name>(via::fetch), "circle");
  }
  destroy_by_all(p);
}

/// One that owns others of its kind.
struct tree {
  std::string label;
  std::unique_ptr<tree> left;
  std::unique_ptr<tree> right;

  template <class Archive>
  void serialize(Archive& ar) {
    ar(label, left, right);
  }

  void insert(const std::string& text) {
    if (label.empty()) {
      label = text;
      return;
    }
    auto& side = text < label ? left : right;
    if (side == nullptr) side = std::make_unique<tree>();
    side->insert(text);
  }
  std::size_t size() const {
    return (label.empty() ? 0u : 1u) + (left ? left->size() : 0u) + (right ? right->size() : 0u);
  }
};

void objects_that_own_others_are_copied_and_moved() {
  auto p = made_on<tree>(last());
  std::mt19937 random(static_cast<unsigned>(rank_me()) + 1);
  for (int i = 0; i < 40; ++i) {
    p.call<&tree::insert>(i % 2 == 0 ? via::fetch : via::rpc, std::to_string(random()) + "!");
    CHECK(p.call<&tree::size>(via::cache) > static_cast<std::size_t>(i));
  }
  barrier();
  CHECK_EQUAL(p.call<&tree::size>(via::cache), 40u * static_cast<std::size_t>(rank_count()));
  destroy_by_all(p);
}

/// It has been full, is emptied elsewhere, and is as it was when it came.
class box {
 public:
  void put(long n) { items_.push_back(n); }
  void clear() { items_.clear(); }
  bool wait_until_empty() const {
    while (!items_.empty()) yield();
    return true;
  }
  /// Needs no address of its object while it waits, only of what that owns.
  void add_to_all(long n, rank_t of) {
    for (long& item : items_) {
      rpc(of, [] { sleep_for(std::chrono::microseconds(200)); }).get();
      item += n;
    }
  }
  long sum() const {
    long sum = 0;
    for (const long item : items_) sum += item;
    return sum;
  }
  /// Answers by a right, which only one can have.
  void answer(continuation<long> to) const { std::move(to)(sum()); }

  template <class Archive>
  void serialize(Archive& ar) {
    ar(items_);
  }

 private:
  std::vector<long> items_;
};

void a_method_sees_that_its_object_left_and_was_emptied() {
  if (rank_count() == 1) return;
  for (int round = 0; round < 10; ++round) {
    const auto p = made_on<box>(0);
    if (rank_me() == last()) {
      p.call<&box::sum>(via::fetch);  // in checked mode it stays at the first call
      p.call<&box::clear>(via::fetch);
      p.call<&box::put>(via::fetch, 7L);
    }
    barrier();
    if (rank_me() == last()) {
      auto waits = fork([p] { return p.call<&box::wait_until_empty>(via::fetch); });
      barrier();
      CHECK(waits.get());
    } else {
      barrier();
      if (rank_me() == 0) p.call<&box::clear>(via::fetch);
    }
    destroy_by_all(p);
  }
}

void a_method_in_what_its_object_owns_keeps_it() {
  for (int round = 0; round < 5; ++round) {
    const auto p = made_on<box>(0);
    if (rank_me() == 0) {
      for (long i = 0; i < 10; ++i) p.call<&box::put>(i);
    }
    barrier();
    if (rank_me() == 0) {
      p.call<&box::add_to_all>(100L, last());
    } else {
      for (int i = 0; i < 20; ++i) {
        p.call<&box::sum>(i % 2 == 0 ? via::cache : via::fetch);
        sleep_for(std::chrono::microseconds(100));
      }
    }
    barrier();
    CHECK_EQUAL(p.call<&box::sum>(via::cache), 1045);
    destroy_by_all(p);
  }
}

void a_right_is_not_lost_on_a_copy() {
  const auto p = made_on<box>(last());
  if (rank_me() == 0) p.call<&box::put>(5L);
  barrier();
  for (int i = 0; i < 3; ++i) {
    auto [answer, answered] = make_continuation<long>();
    p.call<&box::answer>(via::cache, std::move(answer));
    CHECK_EQUAL(answered.get(), 5);
  }
  destroy_by_all(p);
}

/// It has a `serialize`, for files, and what that makes is no such object.
struct settled {
  std::string text = "at home";
  rank_t rank() const { return rank_me(); }
  template <class Archive>
  void serialize(Archive& ar) {
    ar(text);
  }
};

}  // namespace

template <>
inline constexpr bool sojourn::stays_on_its_rank<settled> = true;

namespace {

void a_class_can_forbid_it() {
  const auto p = made_on<settled>(last());
  for (const via how : {via::cache, via::fetch, via::automatic}) {
    for (int i = 0; i < 3; ++i) CHECK_EQUAL(p.call<&settled::rank>(how), last());
  }
  destroy_by_all(p);
}

/// Calls of all ranks at random; each rank knows what it has entered itself.
void random_calls_agree_with_a_model() {
  constexpr int count = 10;
  std::vector<global_ptr<directory>> all;
  for (int i = 0; i < count; ++i) all.push_back(made_on<directory>(i % rank_count()));
  const char* seed = std::getenv("SOJOURN_TEST_SEED");
  std::mt19937 random(
      (seed != nullptr ? static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) : 1u) * 31u +
      static_cast<unsigned>(rank_me()));
  std::vector<std::map<std::string, long>> entered(count);
  std::vector<long> entries(count);
  const via words[] = {via::rpc, via::migrate, via::cache, via::fetch, via::automatic, via::unsaid};
  for (int i = 0; i < 600; ++i) {
    const std::size_t which = random() % count;
    const via how = words[random() % 6];
    const std::string name =
        "rank " + std::to_string(rank_me()) + ", name " + std::to_string(random() % 20);
    const auto mine = entered[which].find(name);
    switch (random() % 4) {
      case 0:
        all[which].call<&directory::enter>(how, name, static_cast<long>(i));
        entered[which][name] = i;
        ++entries[which];
        break;
      case 1:
        CHECK(all[which].call<&directory::count>(how) >= static_cast<std::size_t>(entries[which]));
        break;
      default:
        CHECK_EQUAL(all[which].call<&directory::number_of>(how, name),
                    mine == entered[which].end() ? -1 : mine->second);
    }
  }
  barrier();
  for (std::size_t i = 0; i < count; ++i) {
    const long total = reduce(entries[i], std::plus<>{});
    CHECK_EQUAL(all[i].call<&directory::count>(via::cache), static_cast<std::size_t>(total));
    for (const auto& [name, number] : entered[i])
      CHECK_EQUAL(all[i].call<&directory::number_of>(via::cache, name), number);
  }
  for (auto p : all) destroy_by_all(p);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("copies cost no message when they are here",
                 copies_cost_no_message_when_they_are_here);
    check::claim("reads after a write see it", reads_after_a_write_see_it);
    check::claim("objects that own memory move and come home", objects_move_and_come_home);
    check::claim("a method that waits on a copy sees what comes",
                 a_method_that_waits_on_a_copy_sees_what_comes);
    check::claim("a copy that makes room for others is read on", a_copy_that_makes_room_is_read_on);
    check::claim("objects too long to copy are called at their owner",
                 objects_too_long_to_copy_are_called_at_their_owner);
    check::claim("objects whose save throws are called at their owner",
                 objects_whose_save_throws_are_called_at_their_owner);
    check::claim("long arguments of calls on copies arrive",
                 long_arguments_of_calls_on_copies_arrive);
    check::claim("virtual functions are those of the object",
                 virtual_functions_are_those_of_the_object);
    check::claim("objects that own others are copied and moved",
                 objects_that_own_others_are_copied_and_moved);
    check::claim("a method sees that its object left and was emptied",
                 a_method_sees_that_its_object_left_and_was_emptied);
    check::claim("a method in what its object owns keeps the object",
                 a_method_in_what_its_object_owns_keeps_it);
    check::claim("a right among the arguments is not lost on a copy",
                 a_right_is_not_lost_on_a_copy);
    check::claim("a class can forbid to copy its objects", a_class_can_forbid_it);
    check::claim("random calls agree with a model", random_calls_agree_with_a_model);
    return check::verdict();
  });
}
