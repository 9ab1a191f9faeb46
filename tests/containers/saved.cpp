// SPDX-License-Identifier: Apache-2.0
// Containers that are saved, and loaded again on as many ranks, on fewer and on more. What is
// incomplete, damaged or of another type is refused on all ranks, and what was saved before stays.
//
//   saved              the claims
//   saved save PATH    saves some containers, for
//   saved load PATH    which may be another number of ranks
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sojourn/calls/bytes.hpp>
#include <sojourn/containers.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "jobs/check.hpp"

using namespace sojourn;

namespace {

namespace fs = std::filesystem;

/// A folder that all ranks know, until this ends.
class folder {
 public:
  folder() {
    std::string name = (fs::temp_directory_path() / "sojourn.saved.XXXXXX").string();
    if (rank_me() == 0 && ::mkdtemp(name.data()) == nullptr) throw error("no folder for files");
    name_ = broadcast(name, 0);
  }
  ~folder() {
    barrier();
    if (rank_me() == 0) fs::remove_all(name_);
  }
  std::string file(const std::string& name) const { return name_ + "/" + name; }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& f : fs::directory_iterator(name_)) all.insert(f.path().filename().string());
    return all;
  }

 private:
  std::string name_;
};

struct pair_of_longs {
  long a, b;
  friend bool operator==(const pair_of_longs&, const pair_of_longs&) = default;
};

/// The teams by which things are saved and loaded: all ranks, and the first ones.
std::vector<team> teams() {
  std::vector<team> all{team::world()};
  for (const rank_t most : {1, (rank_count() + 1) / 2})
    all.push_back(team::world().split(rank_me() < most ? 0 : 1, rank_me()));
  return all;
}
/// True on ranks that belong to the first ones, or to all.
bool takes_part(const team& members) { return members[0] == 0; }

/// save(members, path) by each team, and then load(members, path) by each.
template <class Save, class Load>
void on_all_numbers_of_ranks(Save save, Load load) {
  const folder files;
  for (const team& savers : teams()) {
    if (takes_part(savers)) save(savers, files.file("state"));
    barrier();
    for (const team& loaders : teams()) {
      if (takes_part(loaders)) load(loaders, files.file("state"));
      barrier();
    }
    if (rank_me() == 0)
      CHECK_EQUAL(files.names().size(), 1 + static_cast<std::size_t>(savers.rank_count()));
    barrier();
  }
}

template <class Container>
auto gathered(const Container& all, const team& members) {
  using item = std::pair<std::remove_const_t<typename Container::value_type::first_type>,
                         typename Container::value_type::second_type>;
  std::vector<item> here;
  for (const auto& [key, value] : all) here.emplace_back(key, value);
  std::vector<item> whole;
  for (const auto& theirs : all_gather(here, members))
    whole.insert(whole.end(), theirs.begin(), theirs.end());
  std::sort(whole.begin(), whole.end());
  return whole;
}

void maps_are_saved() {
  std::map<std::string, std::vector<int>> model;
  std::minstd_rand random(7);
  for (int i = 0; i < 500; ++i)
    model["key " + std::to_string(random() % 400)] = std::vector<int>(random() % 40, i);
  using map_type = dist_map<std::string, std::vector<int>>;
  on_all_numbers_of_ranks(
      [&](const team& members, const std::string& path) {
        const auto all = map_type::make(members);
        if (members.rank_me() == 0)
          for (const auto& [key, value] : model) all.insert(key, value);
        barrier(members);
        all.save_all(path);
        all.destroy_all();
      },
      [&](const team& members, const std::string& path) {
        const auto all = map_type::load_all(path, members);
        const auto found = gathered(all, members);
        CHECK(std::equal(found.begin(), found.end(), model.begin(), model.end(),
                         [](const auto& a, const auto& b) {
                           return a.first == b.first && a.second == b.second;
                         }));
        for (const auto& [key, value] : all) CHECK_EQUAL(all.owner(key), rank_me());
        all.destroy_all();
      });
}

/// Blocks that are aligned, and long ones, lie elsewhere in an item than short ones.
template <class V, class Make>
void expect_saved_values(Make make) {
  const folder files;
  const auto all = dist_map<int, V>::make();
  for (int i = 0; i < 60; ++i)
    if (all.owner(i) == rank_me()) all.insert(i, make(i));
  barrier();
  all.save_all(files.file("map"));
  const auto again = dist_map<int, V>::load_all(files.file("map"));
  CHECK_EQUAL(again.size_all(), 60u);
  for (const auto& [key, value] : again) CHECK(value == make(key));
  barrier();
  all.destroy_all();
  again.destroy_all();
}
void values_of_all_kinds_are_saved() {
  const auto size = [](int i) { return static_cast<std::size_t>(i); };
  expect_saved_values<std::vector<double>>(
      [&](int i) { return std::vector<double>(size(i % 7), i / 4.0); });
  expect_saved_values<std::vector<long double>>(
      [&](int i) { return std::vector<long double>(size(i % 5), i); });
  expect_saved_values<std::string>([&](int i) { return std::string(size(i * i), 'x'); });
  expect_saved_values<std::vector<std::string>>([&](int i) {
    return std::vector<std::string>{"short", std::string(size(i * 100), 'y'), ""};
  });
  expect_saved_values<std::map<std::string, std::vector<double>>>([&](int i) {
    return std::map<std::string, std::vector<double>>{{"a", {1.0}},
                                                      {"bc", std::vector<double>(size(i * 9), i)}};
  });
}

void counters_are_saved() {
  on_all_numbers_of_ranks(
      [&](const team& members, const std::string& path) {
        const auto all = dist_counter<long>::make(members);
        finish_all(
            [&] {
              for (long i = 0; i < 3000; ++i)
                if (i % members.rank_count() == members.rank_me()) all.ff_add(i * i % 701);
            },
            members);
        all.save_all(path);
        all.destroy_all();
      },
      [&](const team& members, const std::string& path) {
        const auto all = dist_counter<long>::load_all(path, members);
        std::map<long, long> model;
        for (long i = 0; i < 3000; ++i) ++model[i * i % 701];
        const auto found = gathered(all, members);
        CHECK(std::equal(found.begin(), found.end(), model.begin(), model.end(),
                         [](const auto& a, const auto& b) {
                           return a.first == b.first && a.second == b.second;
                         }));
        all.destroy_all();
      });
}

template <class Layout>
void vectors_are_saved() {
  using vector_type = dist_vector<std::string, Layout>;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{237}}) {
    on_all_numbers_of_ranks(
        [&](const team& members, const std::string& path) {
          const auto all = vector_type::make(size, "", members);
          for (const std::size_t i : all.indices_here()) all.here(i) = std::to_string(i * i);
          barrier(members);
          all.save_all(path);
          all.destroy_all();
        },
        [&](const team& members, const std::string& path) {
          const auto all = vector_type::load_all(path, members);
          CHECK_EQUAL(all.size(), size);
          for (const std::size_t i : all.indices_here())
            CHECK_EQUAL(all.here(i), std::to_string(i * i));
          barrier(members);
          all.destroy_all();
        });
  }
}

void bags_are_saved() {
  const folder files;
  const auto bag = dist_bag<pair_of_longs>::make();
  if (rank_me() % 2 == 0)  // others have none
    for (long i = 0; i <= rank_me(); ++i) bag.push_here({rank_me(), i});
  bag.save_all(files.file("bag"));
  // Each has its own again, in their order.
  const auto again = dist_bag<pair_of_longs>::load_all(files.file("bag"));
  CHECK(std::equal(bag.begin(), bag.end(), again.begin(), again.end()));
  const std::size_t count = bag.size_all();
  bag.destroy_all();
  again.destroy_all();
  const team first = team::world().split(rank_me() == 0 ? 0 : 1, rank_me());
  if (takes_part(first)) {
    const auto one = dist_bag<pair_of_longs>::load_all(files.file("bag"), first);
    CHECK_EQUAL(one.size_all(), count);
    for (long i = 0; i < 10 * rank_count(); ++i) one.push_here({-1, i});
    one.save_all(files.file("bag"));
    one.destroy_all();
  }
  barrier();
  const auto spread = dist_bag<pair_of_longs>::load_all(files.file("bag"));
  CHECK_EQUAL(spread.size_all(), count + 10 * static_cast<std::size_t>(rank_count()));
  CHECK(spread.size_here() > 0);
  barrier();
  spread.destroy_all();
}

void graphs_are_saved() {
  using graph = dist_graph<double>;
  const auto arcs_of = [](const graph& g, const team& members) {
    std::vector<std::tuple<std::size_t, std::uint32_t, double>> here;
    for (const std::size_t v : g.vertices_here())
      for (const auto& e : g.row_here(v)) here.emplace_back(v, e.to, e.weight);
    std::vector<std::tuple<std::size_t, std::uint32_t, double>> all;
    for (const auto& theirs : all_gather(here, members))
      all.insert(all.end(), theirs.begin(), theirs.end());
    std::sort(all.begin(), all.end());
    return all;
  };
  std::vector<std::tuple<std::size_t, std::uint32_t, double>> model;
  // Loops, and several arcs between two vertices.
  for (std::size_t i = 0; i < 900; ++i)
    model.emplace_back(i % 90, static_cast<std::uint32_t>(i * i % 97), static_cast<double>(i) / 4);
  on_all_numbers_of_ranks(
      [&](const team& members, const std::string& path) {
        const auto g = graph::make(
            97,
            [&](auto add) {
              if (members.rank_me() == 0)
                for (const auto& [from, to, weight] : model) add(from, to, weight);
            },
            members);
        g.save_all(path);
        g.destroy_all();
      },
      [&](const team& members, const std::string& path) {
        const auto g = graph::load_all(path, members);
        CHECK_EQUAL(g.size(), 97u);
        auto sorted = model;
        std::sort(sorted.begin(), sorted.end());
        CHECK(arcs_of(g, members) == sorted);
        barrier(members);
        g.destroy_all();
      });
  const folder files;
  const auto plain = dist_graph<>::make(5, {.both_ways = true}, [](auto add) {
    if (rank_me() == 0) add(1, 4);
  });
  plain.save_all(files.file("plain"));
  const auto again = dist_graph<>::load_all(files.file("plain"));
  CHECK_EQUAL(again.arcs_all(), 2u);
  CHECK_EQUAL(again.degree(4), 1u);
  barrier();
  plain.destroy_all();
  again.destroy_all();
}

void disjoint_sets_are_saved() {
  on_all_numbers_of_ranks(
      [&](const team& members, const std::string& path) {
        const auto sets = dist_disjoint_set<>::make(200, members);
        // Not compressed: save_all does that.
        for (std::size_t i = 0; i + 7 < 200; ++i)
          if (static_cast<rank_t>(i % static_cast<std::size_t>(members.rank_count())) ==
              members.rank_me())
            sets.unite_here(i, i + 7);
        sets.save_all(path);
        sets.destroy_all();
      },
      [&](const team& members, const std::string& path) {
        const auto sets = dist_disjoint_set<>::load_all(path, members);
        for (const auto& [element, root] : sets) CHECK_EQUAL(root, element % 7);
        CHECK_EQUAL(sets.count_all(), 7u);
        sets.destroy_all();
      });
}

/// What a collective operation throws is thrown on all ranks.
template <class Body>
std::string refusal_of(Body body) {
  std::string what;
  try {
    body();
  } catch (const error& e) {
    what = e.what();
  }
  for (const std::string& theirs : all_gather(what)) CHECK(!theirs.empty());
  return what;
}
bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void what_is_wrong_is_refused() {
  const folder files;
  using map_type = dist_map<long, std::string>;
  const auto map = map_type::make();
  for (long i = 0; i < 300; ++i)
    if (map.owner(i) == rank_me()) map.insert(i, std::to_string(i));
  barrier();
  const std::string path = files.file("map");
  const auto load = [&] { return refusal_of([&] { (void)map_type::load_all(path); }); };

  CHECK(says(load(), "cannot read " + path + ": No such file"));
  map.save_all(path);
  CHECK(says(refusal_of([&] { (void)dist_counter<long>::load_all(path); }),
             "holds a dist_map, and is loaded as a dist_counter"));
  CHECK(says(refusal_of([&] { (void)dist_map<long, long>::load_all(path); }), "of other types"));
  CHECK(says(refusal_of([&] { map.save_all(files.file("no folder/map")); }), "cannot write"));

  std::string part;
  for (const std::string& name : files.names())
    if (name.ends_with(".part0")) part = files.file(name);
  const auto size = fs::file_size(part);
  barrier();
  const auto change = [&](auto how, const std::string& expected) {
    if (rank_me() == 0) how();
    barrier();
    const std::string what = load();
    CHECK(says(what, expected));
    CHECK(says(what, "map.") && says(what, ".part0"));
    barrier();
  };
  const std::string damaged = "is incomplete or damaged";
  const auto flip = [&](std::uintmax_t at) {
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x41));
  };
  for (const std::uintmax_t at : {std::uintmax_t{0}, std::uintmax_t{6}, size / 2, size - 1}) {
    change([&] { flip(at); }, damaged);
    if (rank_me() == 0) flip(at);
    barrier();
  }
  for (const std::uintmax_t to : {size - 1, size / 2, std::uintmax_t{0}})
    change([&] { fs::resize_file(part, to); }, damaged);
  change([&] { fs::remove(part); }, "cannot read");

  // Saved again it is complete; files of a job that ended while it saved are removed.
  if (rank_me() == 0) {
    std::ofstream(path + ".123.part7");
    std::ofstream(path + ".123.new");
    std::ofstream(path + ".123.parts");
    std::ofstream(path + ".other");
  }
  barrier();
  map.save_all(path);
  const auto again = map_type::load_all(path);
  CHECK_EQUAL(again.size_all(), 300u);
  map.save_all(files.file("another"));
  if (rank_me() == 0) {
    std::ofstream(files.file("another") + ".123.part7");
    remove_saved(files.file("another"));
    CHECK_THROWS(error, remove_saved(files.file("another")));
  }
  if (rank_me() == 0) {
    CHECK_EQUAL(files.names().size(), 3 + static_cast<std::size_t>(rank_count()));
    std::ofstream(path, std::ios::app) << "something else\n";
  }
  barrier();
  CHECK(says(load(), "is not a saved container"));
  barrier();
  if (rank_me() == 0) std::ofstream(path) << "something else\n";
  barrier();
  CHECK(says(load(), "is not a saved container"));
  again.destroy_all();
  map.destroy_all();
}

struct refuses_to_be_saved {
  int number = 0;
  std::string text{};  // else it would be copied as bytes
  template <class Archive>
  void save(Archive& to) const {
    if (number == 13) throw std::domain_error("13 is not saved");
    if (number == 14) throw std::domain_error("");
    if (number == 15) throw 15;
    to(number);
  }
  template <class Archive>
  void load(Archive& from) {
    from(number);
  }
};

void what_was_saved_before_stays() {
  const folder files;
  const std::string path = files.file("map");
  using map_type = dist_map<int, refuses_to_be_saved>;
  const auto map = map_type::make();
  if (rank_me() == 0)
    for (int i = 0; i < 10; ++i) map.insert(i, {i, ""});
  barrier();
  map.save_all(path);
  // Whatever is thrown, on whichever rank.
  for (const auto& [number, says_so] :
       {std::pair(13, "13 is not saved"), std::pair(14, "without a text"),
        std::pair(15, "no std::exception")}) {
    if (rank_me() == 0) map.visit(5, [](refuses_to_be_saved& v, int to) { v.number = to; }, number);
    barrier();
    CHECK(says(refusal_of([&] { map.save_all(path); }), says_so));
  }
  const auto before = map_type::load_all(path);
  if (rank_me() == 0) {
    CHECK_EQUAL(before.visit(5, [](refuses_to_be_saved& v) { return v.number; }), 5);
    CHECK_EQUAL(files.names().size(), 1 + static_cast<std::size_t>(rank_count()));
  }
  barrier();
  before.destroy_all();
  map.destroy_all();
}

void values_as_bytes() {
  const std::map<std::string, std::vector<long>> scores{{"a", {1, 2}}, {"b", {}}};
  std::vector<std::byte> bytes = to_bytes(7, scores, std::make_unique<int>(3));
  const auto [number, same, three] =
      from_bytes<int, std::map<std::string, std::vector<long>>, std::unique_ptr<int>>(bytes);
  CHECK_EQUAL(number, 7);
  CHECK(same == scores);
  CHECK_EQUAL(*three, 3);
  const std::size_t size = bytes.size();
  append_bytes(bytes, 1.5);
  CHECK_EQUAL(std::get<0>(from_bytes<double>(std::span(bytes).subspan(size))), 1.5);
  const std::vector<double> halves{0.5, 1.5};
  append_bytes(bytes, halves);
  CHECK(std::get<0>(from_bytes<std::vector<double>>(
            std::span(bytes).subspan(size + sizeof(double)))) == halves);
  bytes.resize(size + sizeof(double));
  CHECK_THROWS(malformed_message, (void)from_bytes<long>(std::span(bytes).first(3)));
  CHECK_THROWS(malformed_message, (void)from_bytes<char>(std::span(bytes).first(3)));
  CHECK_THROWS(std::domain_error, append_bytes(bytes, refuses_to_be_saved{13, ""}));
  CHECK_EQUAL(bytes.size(), size + sizeof(double));
}

int save(const std::string& path) {
  const auto map = dist_map<long, std::string>::make();
  const auto list = dist_vector<long>::make(1000);
  for (long i = 0; i < 1000; ++i) {
    if (map.owner(i) == rank_me()) map.insert(i, std::to_string(i));
    if (list.owner(static_cast<std::size_t>(i)) == rank_me())
      list.here(static_cast<std::size_t>(i)) = i * 3;
  }
  map.save_all(path + ".map");
  list.save_all(path + ".list");
  return 0;
}
int load(const std::string& path) {
  const auto map = dist_map<long, std::string>::load_all(path + ".map");
  const auto list = dist_vector<long>::load_all(path + ".list");
  if (rank_me() == 0) {
    for (long i = 0; i < 1000; ++i) {
      CHECK(map.find(i) == std::to_string(i));
      CHECK_EQUAL(list.get(static_cast<std::size_t>(i)), i * 3);
    }
  }
  barrier();
  return check::verdict();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> how(argv + 1, argv + argc);
  return run(argc, argv, [how] {
    if (how.size() == 2) return how[0] == "save" ? save(how[1]) : load(how[1]);
    check::claim("maps are saved", maps_are_saved);
    check::claim("values of all kinds are saved", values_of_all_kinds_are_saved);
    check::claim("counters are saved", counters_are_saved);
    check::claim("vectors in blocks are saved", vectors_are_saved<blocks>);
    check::claim("vectors in turn are saved", vectors_are_saved<cyclic>);
    check::claim("bags are saved", bags_are_saved);
    check::claim("graphs are saved", graphs_are_saved);
    check::claim("disjoint sets are saved", disjoint_sets_are_saved);
    check::claim("what is wrong is refused", what_is_wrong_is_refused);
    check::claim("what was saved before stays", what_was_saved_before_stays);
    check::claim("values are bytes and come back", values_as_bytes);
    return check::verdict();
  });
}
