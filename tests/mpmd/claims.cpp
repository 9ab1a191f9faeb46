// SPDX-License-Identifier: Apache-2.0
// The claims, compiled into each of the programs.
#include <algorithm>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fiber/thrown.hpp"
#include "interface.hpp"

namespace mpmd {
namespace {

std::vector<char> programs;  // of all ranks
char mine() { return programs[static_cast<std::size_t>(rank_me())]; }

std::vector<rank_t> ranks_of(char program) {
  std::vector<rank_t> ranks;
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (programs[static_cast<std::size_t>(r)] == program) ranks.push_back(r);
  }
  return ranks;
}
/// A rank of another program than this one's.
rank_t stranger() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (programs[static_cast<std::size_t>(r)] != mine()) return r;
  }
  return -1;
}
std::string program_name(rank_t r) {
  switch (programs[static_cast<std::size_t>(r)]) {
    case 'f':
      return "mpmd_farm";
    case 's':
      return "mpmd_shop";
    default:
      return "mpmd_bare";
  }
}
std::string place(rank_t r) { return "rank " + std::to_string(r) + " (" + program_name(r) + ")"; }

template <class E, class Call>
std::string text_of(Call call) {
  try {
    call();
  } catch (const E& e) {
    CHECK(typeid(e) == typeid(E));
    return e.what();
  } catch (const std::exception& e) {
    check::fail(__FILE__, __LINE__, "another exception", e.what());
    return "";
  }
  check::fail(__FILE__, __LINE__, "nothing was thrown", "");
  return "";
}
bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  std::fprintf(stderr, "no `%s` in: %s\n", part.c_str(), text.c_str());
  return false;
}

void each_rank_says_its_program() {
  for (rank_t r = 0; r < rank_count(); ++r) programs.push_back(rpc(r, who()).get());
  // The same from everywhere.
  for (rank_t r = 0; r < rank_count(); ++r) {
    std::vector<char> theirs(programs);
    CHECK_EQUAL(broadcast(mine(), r), programs[static_cast<std::size_t>(r)]);
  }
  CHECK(ranks_of('f').size() + ranks_of('s').size() + ranks_of('b').size() == programs.size());
  CHECK(stranger() >= 0);
}

void functions_are_called_by_name_from_everywhere() {
  for (rank_t r : ranks_of('f')) {
    CHECK_EQUAL(rpc(r, square(), 12).get(), 144);
    std::array<double, 40> values{};
    values[39] = 0.5;
    CHECK_EQUAL(rpc(r, sum(), values, std::array<int, 3>{1, 2, 3}).get(), 6.5);
  }
  for (rank_t r : ranks_of('s')) CHECK_EQUAL(rpc(r, price(), 5).get(), 15);
}

void what_is_called_may_call_other_programs() {
  for (rank_t f : ranks_of('f')) {
    for (rank_t s : ranks_of('s')) {
      CHECK_EQUAL(rpc(f, squared_price(), s, 2).get(), 144);
    }
  }
  for (rank_t s : ranks_of('s')) {
    CHECK_EQUAL(rpc(s, recurse(), ranks_of('s').front(), 40).get(), 40);
  }
}

void many_calls_are_in_flight_at_once() {
  std::vector<future<long>> squares;
  for (int i = 0; i < 2000; ++i) {
    for (rank_t r : ranks_of('f')) squares.push_back(rpc(r, square(), i));
  }
  std::size_t farms = ranks_of('f').size();
  long all = 0;
  for (long s : when_all(std::move(squares)).get()) all += s;
  CHECK_EQUAL(all, static_cast<long>(farms) * (1999L * 2000 * 3999 / 6));
}

void objects_are_made_called_and_destroyed_by_name() {
  for (rank_t r : ranks_of('f')) {
    global_ptr<counter> c = make<counter_interface::create>(r, 5L);
    CHECK_EQUAL(c.where(), r);
    CHECK_EQUAL(c.call<counter_interface::where>(), r);
    CHECK_EQUAL(c.call<counter_interface::add>(2L), 7);
    CHECK_EQUAL(c.call<counter_interface::add>(via::rpc, 2), 9);
    CHECK_EQUAL(c.async<counter_interface::add>(1L).get(), 10);
    global_ptr<const counter> same = c;
    CHECK_EQUAL(same.call<counter_interface::value>(), 10);
    c.call<counter_interface::destroy>();
    // The room is used again: nothing is left behind.
    global_ptr<counter> next = make<counter_interface::create>(r, 1L);
    next.call<counter_interface::destroy>();
  }
}

void values_that_own_memory_pass_between_programs() {
  for (rank_t r : ranks_of('f')) {
    CHECK(rpc(r, repeat(), std::string("word"), 3).get() == std::vector<std::string>(3, "word"));
    CHECK_EQUAL(rpc(r, repeat(), std::string(), 0).get().size(), 0);
    CHECK_EQUAL(rpc(r, total(), std::vector<long>{1, 2, 39}).get(), 42);
    CHECK_EQUAL(rpc(r, total(), std::vector<long>(300'000, 2)).get(), 600'000);
    std::string text(4'000'000, 'a');
    text[1] = 'b';
    std::string back = rpc(r, reversed(), text).get();
    CHECK(back.size() == text.size() && back[back.size() - 2] == 'b');

    global_ptr<counter> c = make<counter_interface::create>(r, 5L);
    std::vector<std::pair<std::string, long>> all{{"a", 1}, {"b", 2}, {"a", 3}};
    CHECK((c.call<counter_interface::add_all>(all) ==
           std::map<std::string, long>{{"a", 4}, {"b", 2}}));
    CHECK((c.async<counter_interface::add_all>(via::migrate, all).get() ==
           std::map<std::string, long>{{"a", 4}, {"b", 2}}));
    CHECK_EQUAL(c.call<counter_interface::value>(), 17);
    c.call<counter_interface::destroy>();
  }
  // A method that waits keeps what it was given.
  for (rank_t f : ranks_of('f')) {
    for (rank_t s : ranks_of('s')) {
      CHECK((rpc(f, priced(), s, std::vector<int>{1, 2, 3}).get() == std::vector<int>{11, 12, 13}));
    }
  }
  barrier();
  if (rank_me() == 0) {
    for (rank_t r : ranks_of('f')) {
      finish([&] { rpc_ff(r, keep(), std::make_unique<std::string>(1000, 'k')); });
      CHECK(rpc(r, kept()).get() == std::string(1000, 'k'));
    }
  }
  barrier();
}

void what_a_constructor_throws_arrives() {
  CHECK(has(text_of<std::invalid_argument>(
                [] { make<counter_interface::create>(ranks_of('f').front(), -1L); }),
            "0 or more"));
}

void object_pointers_pass_between_programs() {
  if (ranks_of('s').empty()) return;
  global_ptr<counter> c;
  rank_t owner = ranks_of('f').back();
  if (rank_me() == 0) c = make<counter_interface::create>(owner, 0L);
  c = broadcast(c);
  for (rank_t s : ranks_of('s')) (void)rpc(s, bump(), c, 10L).get();
  barrier();
  long expected = 10L * rank_count() * static_cast<long>(ranks_of('s').size());
  CHECK_EQUAL(c.call<counter_interface::value>(), expected);
}

void bytes_are_copied_between_programs() {
  global_ptr<int> numbers = make_array<int>(rank_me(), 1000);
  std::vector<global_ptr<int>> all = all_gather(numbers);
  for (rank_t r = 0; r < rank_count(); ++r) {
    store(all[static_cast<std::size_t>(r)] + rank_me(), 100 * r + rank_me());
  }
  barrier();
  for (rank_t r = 0; r < rank_count(); ++r) {
    std::vector<int> got(static_cast<std::size_t>(rank_count()));
    get(all[static_cast<std::size_t>(r)], std::span<int>(got));
    for (rank_t from = 0; from < rank_count(); ++from) {
      CHECK_EQUAL(got[static_cast<std::size_t>(from)], 100 * r + from);
    }
  }
  barrier();
  destroy_array(numbers, 1000);
}

void collectives_span_programs() {
  CHECK_EQUAL(reduce(rank_me(), std::plus<>{}), rank_count() * (rank_count() - 1) / 2);
  std::vector<int> all = all_gather(7 * rank_me());
  CHECK_EQUAL(all.back(), 7 * (rank_count() - 1));
}

/// Where it was thrown is told by addresses of code.
void exceptions_of_collectives_bring_no_addresses_of_other_programs() {
  std::exception_ptr thrown;
  try {
    (void)reduce(1, [](int, int) -> int { throw std::domain_error("of rank 0"); });
  } catch (const std::domain_error&) {
    thrown = std::current_exception();
  }
  CHECK(thrown != nullptr);
  if (thrown == nullptr) return;
  const detail::thrown_frames* const from = detail::thrown_from(thrown);
  CHECK(from == nullptr || programs[static_cast<std::size_t>(from->rank)] == mine());
}

void a_name_that_nobody_exports_is_an_error_that_says_so() {
  rank_t f = ranks_of('f').front();
  std::string text = text_of<not_exported>([=] { rpc(f, misspelt(), 3).get(); });
  CHECK(has(text, place(f) + " exports no \"farm.sqaure\""));
  CHECK(has(text, place(rank_me()) + " calls as long(int)"));
  CHECK(has(text, "\"farm.square\""));
  // In both directions.
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (programs[static_cast<std::size_t>(r)] == 'f') continue;
    text = text_of<not_exported>([=] { rpc(r, square(), 3).get(); });
    CHECK(has(text, place(r) + " exports no \"farm.square\""));
  }
}

void another_signature_is_an_error_that_tells_both() {
  rank_t f = ranks_of('f').front();
  std::string text = text_of<not_exported>([=] { rpc(f, square_of_long(), 3L).get(); });
  CHECK(has(text, place(f) + " exports \"farm.square\" as long(int)"));
  CHECK(has(text, place(rank_me()) + " calls it as long(long)"));
  text = text_of<not_exported>([=] { rpc(f, square_to_int(), 3).get(); });
  CHECK(has(text, "as int(int)"));
  global_ptr<counter> c = make<counter_interface::create>(f, 0L);
  if (f != rank_me()) {
    text = text_of<not_exported>([=] { c.call<wrong_add>(1); });
    CHECK(has(text, "as long mpmd::counter::(long)"));
    CHECK(has(text, "as long mpmd::counter::(int)"));
  }
  // Later calls of the right name are not harmed.
  CHECK_EQUAL(rpc(f, square(), 3).get(), 9);
  c.call<counter_interface::destroy>();
}

void a_type_of_another_size_is_an_error_that_says_so() {
  if (mine() == 'f') return;
  growing mine_of_it{};
  std::string text =
      text_of<not_exported>([=] { rpc(ranks_of('f').front(), of_other_size(), mine_of_it).get(); });
  CHECK(has(text, "as int(mpmd::growing)"));
  CHECK(has(text, "has a different size"));
}

void a_one_way_call_of_no_name_fails_the_finish() {
  rank_t f = ranks_of('f').front();
  std::string text = text_of<not_exported>([=] { finish([=] { rpc_ff(f, misspelt(), 3); }); });
  CHECK(has(text, "exports no \"farm.sqaure\""));
}

/// Together more than a rank keeps at once for others.
void refused_calls_keep_no_long_arguments() {
  const rank_t f = ranks_of('f').front();
  if (rank_me() != (f + 1) % rank_count()) return;
  const std::vector<char> long_one(32 << 20, 'x');
  for (int i = 0; i < 10; ++i)
    CHECK_THROWS(not_exported, rpc(f, misspelt_length(), long_one).get());
  for (int i = 0; i < 10; ++i)
    CHECK_THROWS(not_exported, finish([&] { rpc_ff(f, misspelt_length(), long_one); }));
  global_ptr<counter> c = make<counter_interface::create>(f, 0L);
  const std::string text(32 << 20, 'x');
  for (int i = 0; i < 10; ++i) CHECK_THROWS(not_exported, c.call<wrong_add_text>(text));
  c.call<counter_interface::destroy>();
}

int plain(int x) { return x + 1; }

struct plain_object {
  int x = 1;
  int twice() { return 2 * x; }
};

void unnamed_calls_of_another_program_are_refused() {
  rank_t other = stranger();
  auto refused = [=](auto call) {
    std::string text = text_of<different_program>(call);
    CHECK(has(text, place(other)));
    CHECK(has(text, place(rank_me())));
    CHECK(has(text, "sojourn::method"));
  };
  refused([=] { rpc(other, plain, 1).get(); });
  refused([=] { rpc_ff(other, plain, 1); });
  refused([=] { rpc(other, [](int x) { return x; }, 1).get(); });
  refused([=] { spawn_on(other, plain, 1); });
  refused([=] { make<plain_object>(other); });
  refused([=] { make_array<int>(other, 3); });
  global_ptr<plain_object> there =
      all_gather(make<plain_object>(rank_me())).at(static_cast<std::size_t>(other));
  refused([=] { there.call<&plain_object::twice>(); });
  refused([=] { there.call<&plain_object::twice>(via::migrate); });
  refused([=] { (void)there.async<&plain_object::twice>(); });
  refused([=] { destroy(there); });
  // A finish around it ends.
  refused([=] { finish([=] { rpc_ff(other, plain, 1); }); });
  refused([=] { finish([=] { rpc(other, plain, 1).get(); }); });
}

rank_t tries_to_go(rank_t to) {
  bool went = migrate_to(to);
  CHECK(!went);
  return rank_me();
}
rank_t calls_by_migration(global_ptr<counter> c) {
  CHECK_EQUAL(c.call<counter_interface::add>(via::migrate, 1L), 1);
  return rank_me();
}

void frames_stay_in_their_program() {
  CHECK_EQUAL(activate(tries_to_go, stranger()), rank_me());
  counters before = counters_now();
  global_ptr<counter> c = make<counter_interface::create>(ranks_of('f').front(), 0L);
  rank_t there = activate(calls_by_migration, c);
  // Within the farm they go; from elsewhere it is an rpc.
  CHECK_EQUAL(there, mine() == 'f' ? c.where() : rank_me());
  if (mine() != 'f') CHECK_EQUAL((counters_now() - before).migrations, 0);
  c.call<counter_interface::destroy>();
}

void activations_go_between_ranks_of_one_program() {
  rank_t first = ranks_of('f').front();
  rank_t last = ranks_of('f').back();
  global_ptr<counter> c = make<counter_interface::create>(last, 0L);
  // Called from another program, the activation moves inside the farm, and answers straight here.
  CHECK_EQUAL(rpc(first, walk(), c).get(), last);
  c.call<counter_interface::destroy>();
}

void sleeps_long() { sleep_for(std::chrono::milliseconds(60)); }

void threads_stay_in_their_program() {
  rank_t other = stranger();
  auto refused = [=](auto call) {
    try {
      call();
      check::fail(__FILE__, __LINE__, "nothing was thrown", "");
    } catch (const thread_error& e) {
      CHECK_EQUAL(e.why(), thread_refusal::other_program);
      CHECK(has(e.what(), place(other)));
    }
  };
  thread t = spawn(sleeps_long);
  yield();
  refused([=] { migrate(t, other); });
  t.join();
  // By itself.
  spawn(
      [](rank_t to) {
        try {
          migrate(self(), to);
          check::fail(__FILE__, __LINE__, "it went", "");
        } catch (const thread_error& e) {
          CHECK_EQUAL(e.why(), thread_refusal::other_program);
        }
      },
      other)
      .join();
  // By another program: the thread's rank refuses, and tells the whole sentence.
  thread far = rpc(ranks_of('f').front(), spawns(), 200).get();
  // Load balance may have handed it on.
  CHECK_EQUAL(programs[static_cast<std::size_t>(far.where())], 'f');
  CHECK(!far.finished());
  rank_t target = mine() == 'f' ? other : rank_me();
  try {
    migrate(far, target);
    check::fail(__FILE__, __LINE__, "it went", "");
  } catch (const thread_error& e) {
    CHECK_EQUAL(e.why(), thread_refusal::other_program);
    CHECK(has(e.what(), place(target)));
    CHECK(has(e.what(), "(mpmd_farm)"));
  }
  // Inside its program anybody moves it.
  migrate(far, ranks_of('f').back());
  if (balance_now() == balance_policy::none) CHECK_EQUAL(far.where(), ranks_of('f').back());
  CHECK_EQUAL(programs[static_cast<std::size_t>(far.where())], 'f');
  far.join();
  CHECK_THROWS(thread_error, far.join());
}

void ready_threads_are_handed_out_inside_a_program() {
  std::vector<thread> started;
  for (int i = 0; i < 60; ++i) {
    started.push_back(spawn(
        [](rank_t home, char program) {
          for (int turn = 0; turn < 20; ++turn) yield();
          // Of a rank that runs another program the function would be another one.
          CHECK(rpc(rank_me(), who()).get() == program);
          (void)home;
        },
        rank_me(), mine()));
  }
  for (thread t : started) t.join();
}

void exceptions_pass_between_programs() {
  rank_t f = ranks_of('f').front();
  auto call = [=](int kind) { rpc(f, throws(), kind).get(); };
  CHECK_THROWS(std::out_of_range, call(standard));
  CHECK(has(text_of<out_of_stock>([&] { call(registered); }), "no apples"));
  try {
    call(registered_bytes);
    CHECK(!"thrown");
  } catch (const shortage& s) {
    CHECK_EQUAL(s.item, 7);
    CHECK_EQUAL(s.missing, 3);
  }
  try {
    call(of_thread);
    CHECK(!"thrown");
  } catch (const thread_error& e) {
    CHECK_EQUAL(e.why(), thread_refusal::pinned);
  }
  auto comes_as_text = [&](int kind, const char* type, const char* what) {
    try {
      call(kind);
      CHECK(!"thrown");
    } catch (const remote_exception& e) {
      CHECK_EQUAL(e.type_name(), type);
      CHECK_EQUAL(std::string(e.what()), what);
      CHECK_EQUAL(e.rank(), f);
    }
  };
  if (f == rank_me()) {
    // Of this rank: it stays what it is.
    try {
      call(nowhere);
      CHECK(!"thrown");
    } catch (const remote_exception&) {
      CHECK(!"itself");
    } catch (const std::exception& hail) {
      CHECK_EQUAL(std::string(hail.what()), "stones");
    }
  } else {
    comes_as_text(nowhere, "mpmd::hail", "stones");
  }
  if (mine() == 'f') {
    CHECK(has(text_of<blight>([&] { call(unknown); }), "potatoes"));
    return;
  }
  comes_as_text(unknown, "mpmd::blight", "potatoes");
  comes_as_text(unknown_bytes, "mpmd::frost", "an exception of type mpmd::frost");
}

void one_way_calls_arrive_before_their_finish_ends() {
  rank_t f = ranks_of('f').back();
  barrier();
  long before = rpc(f, number_of_notes()).get();
  barrier();
  // More than the way there holds.
  constexpr int calls = 5000;
  finish([=] {
    for (int i = 0; i < calls; ++i) rpc_ff(f, note(), 1);
  });
  barrier();
  CHECK_EQUAL(rpc(f, number_of_notes()).get() - before, static_cast<long>(calls) * rank_count());
}

void stop_tokens_pass_between_programs() {
  if (ranks_of('s').empty()) return;
  stop_source source;
  future<bool> stopped = rpc(ranks_of('s').front(), stops(), source.token());
  source.request_stop();
  CHECK(stopped.get());
}

void names_are_sent_once_to_each_rank() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    (void)rpc(r, who()).get();  // known by now
    counters before = counters_now();
    for (int i = 0; i < 50; ++i) (void)rpc(r, who()).get();
    counters done = counters_now() - before;
    CHECK_EQUAL(done.name_cache_hits, 50);
    CHECK_EQUAL(done.name_cache_misses, 0);
  }
  // Each rank is asked for itself, and a miss is one message more: the answer to the name.
  for (rank_t r : ranks_of('f')) {
    counters before = counters_now();
    for (int i = 0; i < 10; ++i) rpc(r, seen_once(), i).get();
    counters done = counters_now() - before;
    CHECK_EQUAL(done.name_cache_hits, 9);
    CHECK_EQUAL(done.name_cache_misses, 1);
  }
  // A name that is not there stays a miss, and an error each time.
  rank_t f = ranks_of('f').front();
  counters before = counters_now();
  for (int i = 0; i < 3; ++i) CHECK_THROWS(not_exported, rpc(f, misspelt(), i).get());
  CHECK_EQUAL((counters_now() - before).name_cache_misses, 3);
}

/// Calls with what a stub claims, whatever that is.
future<long> call_with(detail::name_stub& stub, rank_t to, std::size_t bytes, int argument) {
  detail::outgoing out = detail::begin_named(stub, to, bytes, true);
  std::memcpy(out.payload, &argument, std::min(bytes, sizeof argument));
  detail::commit_named(to, false, out.ticket);
  return detail::future_access::of_ticket<future<long>>(out.ticket);
}

void a_wrong_entry_reaches_no_other_function() {
  rank_t f = ranks_of('f').front();
  (void)rpc(f, square(), 1).get();
  std::vector<std::uint32_t> entries(static_cast<std::size_t>(rank_count()));
  detail::name_stub forged = square::named::stub;
  forged.entries = entries.data();
  for (std::uint32_t entry : {1u, 2u, 3u, 5u, 8u, 1000u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
    entries[static_cast<std::size_t>(f)] = entry;
    CHECK_EQUAL(call_with(forged, f, sizeof(int), 5).get(), 25);
  }
  // A key that no name there has, with any entry.
  forged.key ^= 1;
  for (std::uint32_t entry : {1u, 2u, 3u, 1000u, 0xffffffffu}) {
    entries[static_cast<std::size_t>(f)] = entry;
    CHECK(has(text_of<not_exported>([&] { call_with(forged, f, sizeof(int), 5).get(); }),
              "not in the table"));
  }
}

void a_message_that_is_too_short_is_refused() {
  rank_t f = ranks_of('f').front();
  (void)rpc(f, square(), 1).get();
  detail::name_stub known = square::named::stub;
  CHECK(has(text_of<error>([&] { call_with(known, f, 0, 0).get(); }),
            "farm.square by " + place(rank_me()) + " is shorter than its arguments"));
}

void ranks_that_do_not_exist_are_refused() {
  CHECK_THROWS(error, rpc(rank_count(), who()).get());
  CHECK_THROWS(error, rpc(-1, who()).get());
  CHECK_THROWS(error, global_ptr<counter>().call<counter_interface::value>());
}

void a_checkpoint_is_refused() {
  try {
    checkpoint("never");
    CHECK(!"written");
  } catch (const checkpoint_error& e) {
    CHECK_EQUAL(e.why(), checkpoint_refusal::several_programs);
  }
}

}  // namespace

int run_claims() {
  using check::claim;
#define CLAIM(name) claim(#name, name)
  claim("each_rank_says_its_program", each_rank_says_its_program);
  CLAIM(functions_are_called_by_name_from_everywhere);
  CLAIM(what_is_called_may_call_other_programs);
  CLAIM(many_calls_are_in_flight_at_once);
  CLAIM(objects_are_made_called_and_destroyed_by_name);
  CLAIM(values_that_own_memory_pass_between_programs);
  CLAIM(what_a_constructor_throws_arrives);
  CLAIM(object_pointers_pass_between_programs);
  CLAIM(bytes_are_copied_between_programs);
  CLAIM(collectives_span_programs);
  CLAIM(exceptions_of_collectives_bring_no_addresses_of_other_programs);
  CLAIM(a_name_that_nobody_exports_is_an_error_that_says_so);
  CLAIM(another_signature_is_an_error_that_tells_both);
  CLAIM(a_type_of_another_size_is_an_error_that_says_so);
  CLAIM(a_one_way_call_of_no_name_fails_the_finish);
  CLAIM(refused_calls_keep_no_long_arguments);
  CLAIM(unnamed_calls_of_another_program_are_refused);
  CLAIM(frames_stay_in_their_program);
  CLAIM(activations_go_between_ranks_of_one_program);
  CLAIM(threads_stay_in_their_program);
  CLAIM(ready_threads_are_handed_out_inside_a_program);
  CLAIM(exceptions_pass_between_programs);
  CLAIM(one_way_calls_arrive_before_their_finish_ends);
  CLAIM(stop_tokens_pass_between_programs);
  CLAIM(names_are_sent_once_to_each_rank);
  CLAIM(a_wrong_entry_reaches_no_other_function);
  CLAIM(a_message_that_is_too_short_is_refused);
  CLAIM(ranks_that_do_not_exist_are_refused);
  CLAIM(a_checkpoint_is_refused);
  return check::verdict();
}

}  // namespace mpmd
