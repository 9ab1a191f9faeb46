// SPDX-License-Identifier: Apache-2.0
#include "marshal_target.hpp"

#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include "sojourn/detail/marshalled.hpp"

namespace fuzz {

namespace {

using namespace sojourn;
using namespace sojourn::detail;

struct person {
  std::string name;
  int age;
  std::vector<std::string> tags;
  bool employed;
};
struct tree {
  int value;
  std::vector<tree> children;
};
struct chain {
  std::string text;
  std::unique_ptr<chain> next;
};
struct annotated {
  std::map<std::string, std::vector<int>> lists;
  std::optional<std::string> text;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(lists, text);
  }
};
struct nothing_written {
  std::string kept_here;
  template <class Archive>
  void serialize(Archive&) {}
};
enum class colour : std::uint8_t { red, green };

/// Message bytes at an address aligned as those of a transport are, with nothing behind them.
struct aligned_bytes {
  explicit aligned_bytes(const std::uint8_t* bytes, std::size_t size) {
    memory = static_cast<std::byte*>(::operator new(size == 0 ? 1 : size, std::align_val_t(16)));
    if (size != 0) std::memcpy(memory, bytes, size);
  }
  ~aligned_bytes() { ::operator delete(memory, std::align_val_t(16)); }
  std::byte* memory;
};

template <class... T>
message written(const std::tuple<T...>& values) {
  return std::apply(
      [](const T&... v) {
        measured size = measure(v...);
        message m(header_room + size.whole);
        aligned_bytes room(m.data(), m.size());
        if (write_whole(room.memory, size.whole, v...) != nullptr) std::abort();
        std::memcpy(m.data(), room.memory, m.size());
        return m;
      },
      values);
}

template <class... T>
struct choice {
  static receive_buffers& buffers() {
    static receive_buffers all;
    return all;
  }

  static bool read(const std::uint8_t* bytes, std::size_t size) {
    aligned_bytes room(bytes, size);
    incoming_values<T...> in(room.memory, size, -1, &buffers());
    if (in.abandoned()) return false;
    try {
      const auto& values = in.get();
      // What was accepted is a value: it can be written, and read again.
      message once = written(values);
      aligned_bytes again(once.data(), once.size());
      incoming_values<T...> back(again.memory, once.size(), -1, &buffers());
      if (written(back.get()).size() != once.size()) {
        std::fprintf(stderr, "values that were accepted are written and read as others\n");
        std::abort();
      }
      return true;
    } catch (const sojourn::error&) {
      return false;
    }
  }
};

using choices =
    std::tuple<choice<std::string>, choice<std::vector<double>, int>,
               choice<std::vector<std::string>>, choice<person>, choice<tree>, choice<chain>,
               choice<std::map<std::string, std::vector<std::optional<int>>>>,
               choice<std::variant<int, std::string, person, std::vector<bool>>>,
               choice<annotated, std::vector<annotated>>, choice<std::vector<nothing_written>>,
               choice<std::list<std::set<int>>, std::deque<std::pair<short, std::string>>>,
               choice<std::unordered_map<int, std::string>, std::array<std::string, 3>>,
               choice<std::string_view, std::span<const long>, bool>,
               choice<std::optional<std::unique_ptr<std::vector<colour>>>, std::tuple<>>>;

template <std::size_t I = 0>
bool read_choice(std::size_t which, const std::uint8_t* bytes, std::size_t size) {
  if constexpr (I < std::tuple_size_v<choices>) {
    if (which == I) return std::tuple_element_t<I, choices>::read(bytes, size);
    return read_choice<I + 1>(which, bytes, size);
  } else {
    return false;
  }
}

template <class... T>
void add(std::vector<message>& to, std::uint8_t which, T... values) {
  message m = written(std::tuple<T...>(std::move(values)...));
  m.insert(m.begin(), which);
  to.push_back(std::move(m));
}

chain chain_of(int length) {
  chain first{"end", nullptr};
  for (int i = 0; i < length; ++i) {
    chain longer{std::to_string(i), std::make_unique<chain>(std::move(first))};
    first = std::move(longer);
  }
  return first;
}

/// As the first message of a long value: all of it is elsewhere.
message kept(std::uint8_t which, std::uint64_t holder, std::uint64_t address,
             std::vector<std::uint64_t> words) {
  message m(1 + kept_header_room + words.size() * 8);
  m[0] = which;
  marshalled_header header{marshalled_header::form::kept, 0, words.size() * 8};
  kept_place place{holder, address};
  std::memcpy(m.data() + 1, &header, sizeof header);
  std::memcpy(m.data() + 1 + header_room, &place, sizeof place);
  std::memcpy(m.data() + 1 + kept_header_room, words.data(), words.size() * 8);
  return m;
}

}  // namespace

bool read_message(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return false;
  return read_choice(bytes[0] % std::tuple_size_v<choices>, bytes + 1, size - 1);
}

std::vector<message> good_messages() {
  std::vector<message> all;
  using namespace std::string_literals;
  add(all, 0, "some text"s);
  add(all, 0, std::string(300, 'x'));
  add(all, 1, std::vector<double>{1, 2, 3}, 4);
  add(all, 2, std::vector<std::string>{"a", "", "ccc"});
  add(all, 3, person{"Ada", 36, {"x", "y"}, true});
  add(all, 4, tree{1, {{2, {{3, {}}}}, {4, {}}}});
  add(all, 5, chain_of(5));
  add(all, 5, chain_of(25));
  add(all, 6, std::map<std::string, std::vector<std::optional<int>>>{{"a", {1, {}, 3}}, {"b", {}}});
  using one_of = std::variant<int, std::string, person, std::vector<bool>>;
  add(all, 7, one_of(std::string("second")));
  add(all, 7, one_of(std::vector<bool>{true, false, true}));
  add(all, 7, one_of(person{"B", 1, {}, false}));
  add(all, 8, annotated{{{"a", {1, 2}}}, "text"},
      std::vector<annotated>{{{}, std::nullopt}, {{}, "b"}});
  add(all, 9, std::vector<nothing_written>(4));
  add(all, 10, std::list<std::set<int>>{{1, 2}, {}},
      std::deque<std::pair<short, std::string>>{{short{1}, "a"}});
  add(all, 11, std::unordered_map<int, std::string>{{1, "a"}, {2, "b"}},
      std::array<std::string, 3>{"a", "b", "c"});
  const long numbers[] = {1, 2, 3};
  add(all, 12, std::string_view("viewed"), std::span<const long>(numbers), true);
  add(all, 13, std::optional(std::make_unique<std::vector<colour>>(2, colour::green)),
      std::tuple<>());
  all.push_back(kept(0, 1, 0, {100'000, 0x7f00'0000'0000}));
  all.push_back(kept(1, 1, 0x10'0000, {}));
  return all;
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  (void)fuzz::read_message(bytes, size);
  return 0;
}
