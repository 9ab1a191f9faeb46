// SPDX-License-Identifier: Apache-2.0
#include "memory/thread_arena.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory_resource>
#include <new>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/region_test.hpp"

namespace {

using namespace sojourn::detail;

constexpr std::size_t page = thread_arena::page_bytes;

bool throws_bad_alloc(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

std::uint64_t number(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

/// An arena between two ranks: what a message would hold.
struct luggage {
  arena_descriptor descriptor;
  std::vector<page_range> table;
  std::vector<char> bytes;

  const page_range* ranges() const { return table.data() + descriptor.extents; }
};

luggage pack(thread_arena* arena) {
  luggage l;
  l.descriptor = arena->describe();
  l.table.resize(l.descriptor.entries());
  arena->list(l.table.data());
  l.bytes.resize(l.descriptor.bytes);
  char* to = l.bytes.data();
  for (std::uint32_t i = 0; i < l.descriptor.ranges; ++i) {
    CLAIM(to + l.ranges()[i].bytes <= l.bytes.data() + l.bytes.size());
    std::memcpy(to, reinterpret_cast<void*>(l.ranges()[i].address), l.ranges()[i].bytes);
    to += l.ranges()[i].bytes;
  }
  CLAIM(to == l.bytes.data() + l.bytes.size());
  thread_arena::leave(arena->extents_in_use());
  return l;
}

thread_arena* unpack(const luggage& l) {
  thread_arena* arena = thread_arena::arrive(l.descriptor, l.table.data());
  const char* from = l.bytes.data();
  for (std::uint32_t i = 0; i < l.descriptor.ranges; ++i) {
    std::memcpy(reinterpret_cast<void*>(l.ranges()[i].address), from, l.ranges()[i].bytes);
    from += l.ranges()[i].bytes;
  }
  return arena;
}

/// Overwrites the memory that a thread left, as a rank with other uses for it does.
void spoil(const luggage& l) {
  for (std::uint32_t i = 0; i < l.descriptor.extents; ++i) {
    CLAIM(madvise(reinterpret_cast<void*>(l.table[i].address), l.table[i].bytes, MADV_DONTNEED) ==
          0);
  }
}

bool in_a_range(const luggage& l, const void* p, std::size_t bytes) {
  for (std::uint32_t i = 0; i < l.descriptor.ranges; ++i) {
    std::uint64_t offset = number(p) - l.ranges()[i].address;
    if (offset < l.ranges()[i].bytes && bytes <= l.ranges()[i].bytes - offset) return true;
  }
  return false;
}

std::size_t resident_pages(std::uint64_t address, std::uint64_t bytes) {
  std::vector<unsigned char> pages(bytes / page);
  CLAIM(mincore(reinterpret_cast<void*>(address), bytes, pages.data()) == 0);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; }));
}

// Random operations against a model.

struct block {
  char* at;
  std::size_t bytes;
  std::size_t alignment;
  unsigned pattern;
};

void fill(const block& b) {
  for (std::size_t i = 0; i < b.bytes; ++i) b.at[i] = static_cast<char>(b.pattern + i * 7);
}
bool is_whole(const block& b) {
  for (std::size_t i = 0; i < b.bytes; ++i) {
    if (b.at[i] != static_cast<char>(b.pattern + i * 7)) return false;
  }
  return true;
}

class random_user {
 public:
  random_user(thread_arena* arena, unsigned seed) : arena_(arena), random_(seed) {}

  void step() {
    std::uint64_t what = random_() % 16;
    if (what < 8 || blocks_.empty()) {
      allocate();
    } else if (what < 14) {
      free(random_() % blocks_.size());
    } else {
      reallocate(random_() % blocks_.size());
    }
  }
  void drop_most() {
    while (blocks_.size() > 5) free(random_() % blocks_.size());
  }
  void free_all() {
    while (!blocks_.empty()) free(blocks_.size() - 1);
  }
  void check_all() const {
    for (auto& [address, b] : sorted()) CLAIM(is_whole(b));
    const block* before = nullptr;
    auto all = sorted();
    for (auto& [address, b] : all) {
      CLAIM(before == nullptr || before->at + before->bytes <= b.at);
      before = &b;
    }
    CLAIM(arena_->is_valid());
  }
  std::size_t live_bytes() const {
    std::size_t sum = 0;
    for (const block& b : blocks_) sum += b.bytes;
    return sum;
  }
  const std::vector<block>& blocks() const { return blocks_; }

 private:
  std::map<char*, block> sorted() const {
    std::map<char*, block> all;
    for (const block& b : blocks_) all.emplace(b.at, b);
    CLAIM(all.size() == blocks_.size());
    return all;
  }
  std::size_t some_bytes() {
    // All magnitudes are equally likely.
    std::size_t most = std::size_t{1} << random_() % 19;
    return 1 + random_() % most;
  }
  void allocate() {
    std::size_t alignment = random_() % 4 != 0 ? 16 : std::size_t{1} << random_() % 13;
    add(some_bytes(), alignment);
  }
  void add(std::size_t bytes, std::size_t alignment) {
    block b{static_cast<char*>(arena_->allocate(bytes, alignment)), bytes, alignment,
            static_cast<unsigned>(random_())};
    CLAIM(number(b.at) % alignment == 0);
    fill(b);
    blocks_.push_back(b);
  }
  void free(std::size_t i) {
    CLAIM(is_whole(blocks_[i]));
    arena_->deallocate(blocks_[i].at, blocks_[i].bytes, blocks_[i].alignment);
    blocks_[i] = blocks_.back();
    blocks_.pop_back();
  }
  void reallocate(std::size_t i) {
    std::size_t bytes = some_bytes();
    block old = blocks_[i];
    add(bytes, old.alignment);
    std::size_t common = std::min(bytes, old.bytes);
    std::memcpy(blocks_.back().at, old.at, common);
    CLAIM(std::memcmp(blocks_.back().at, old.at, common) == 0);
    fill(blocks_.back());
    free(i);
  }

  thread_arena* arena_;
  std::mt19937 random_;
  std::vector<block> blocks_;
};

constexpr int steps = 4000;

TEST(thread_arena, blocks_of_all_sizes_and_alignments_are_apart_and_keep_what_is_written) {
  auto claims = [] {
    map_as(0);
    for (unsigned seed = 1; seed <= 4; ++seed) {
      thread_arena* arena = thread_arena::make();
      random_user user(arena, seed);
      for (int i = 0; i < steps; ++i) {
        user.step();
        if (i % 500 == 0) user.check_all();
        if (i == steps / 2) user.drop_most();
      }
      user.check_all();
      user.free_all();
      CLAIM(arena->is_valid());
      arena_descriptor d = arena->describe();
      CLAIM(d.ranges == d.extents);  // nothing but records is left
      CLAIM(d.bytes < 2048 * d.extents);
      CLAIM(thread_arena::end(arena).empty());
      CLAIM(extents.bytes_taken() == 0);
    }
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, what_was_copied_back_goes_on_as_if_nothing_had_happened) {
  auto claims = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    random_user user(arena, 5);
    for (int hop = 0; hop < 60; ++hop) {
      for (int i = 0; i < 100; ++i) user.step();
      if (hop % 20 == 19) user.drop_most();
      std::size_t bytes = arena->used_pages_bytes();
      luggage l = pack(arena);
      CLAIM(l.bytes.size() == bytes);
      for (const block& b : user.blocks()) CLAIM(in_a_range(l, b.at, b.bytes));
      spoil(l);
      CLAIM(unpack(l) == arena);
      user.check_all();
    }
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, blocks_of_zero_bytes_are_apart) {
  auto claims = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    void* a = arena->allocate(0);
    void* b = arena->allocate(0);
    CLAIM(a != b);
    arena->deallocate(a, 0);
    arena->deallocate(b, 0);
    CLAIM(arena->is_valid());
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, an_alignment_above_a_page_is_refused) {
  auto claims = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    CLAIM(throws_bad_alloc([&] { (void)arena->allocate(100, 8192); }));
    // Not a constant, or the compiler warns of it.
    volatile std::size_t too_much = ~std::size_t{0} - 100;
    CLAIM(throws_bad_alloc([&] { (void)arena->allocate(too_much); }));
    CLAIM(throws_bad_alloc([&] { (void)arena->allocate(too_much, 4096); }));
    CLAIM(arena->is_valid());
  };
  EXPECT_CLAIMS(claims);
}

// Containers.

using text = std::pmr::string;

/// What a thread would have in its heap. All of its members point to the arena.
struct belongings {
  std::pmr::map<int, text> by_number;
  std::pmr::unordered_map<text, int> by_name;
  std::pmr::vector<double> values;
  std::pmr::vector<text> names;
  text long_text;

  explicit belongings(std::pmr::memory_resource* r)
      : by_number(r), by_name(r), values(r), names(r), long_text(r) {}

  std::pmr::memory_resource* resource() const { return long_text.get_allocator().resource(); }
};

/// The same changes for the same seed, whether to a `belongings` on any rank or to a `model`.
template <class B>
void change(B& b, unsigned seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    int key = static_cast<int>(random() % 500);
    std::string name = "the name of number " + std::to_string(key);
    switch (random() % 5) {
      case 0:
        b.by_number.erase(key);
        b.by_name.erase(typename decltype(b.by_name)::key_type(name.c_str()));
        break;
      case 1:
        b.by_number[key] = std::string(random() % 3000, static_cast<char>('a' + key % 26)).c_str();
        break;
      case 2:
        b.by_name[typename decltype(b.by_name)::key_type(name.c_str())] = key;
        break;
      case 3:
        b.values.push_back(key / 3.0);
        if (b.values.size() > 5000) {
          b.values.clear();
          b.values.shrink_to_fit();
        }
        break;
      default:
        b.names.emplace_back(name.c_str());
        if (b.names.size() > 100) b.names.erase(b.names.begin(), b.names.begin() + 50);
        b.long_text += name.c_str();
    }
  }
}

struct model {
  std::map<int, std::string> by_number;
  std::unordered_map<std::string, int> by_name;
  std::vector<double> values;
  std::vector<std::string> names;
  std::string long_text;
};

bool equal(const belongings& b, const model& m) {
  auto same = [](const text& x, const std::string& y) { return x.compare(y.c_str()) == 0; };
  if (!std::equal(
          b.by_number.begin(), b.by_number.end(), m.by_number.begin(), m.by_number.end(),
          [&](auto& x, auto& y) { return x.first == y.first && same(x.second, y.second); })) {
    return false;
  }
  if (b.by_name.size() != m.by_name.size()) return false;
  for (auto& [name, value] : m.by_name) {
    auto found = b.by_name.find(text(name.c_str(), b.resource()));
    if (found == b.by_name.end() || found->second != value) return false;
  }
  return std::equal(b.values.begin(), b.values.end(), m.values.begin(), m.values.end()) &&
         std::equal(b.names.begin(), b.names.end(), m.names.begin(), m.names.end(), same) &&
         same(b.long_text, m.long_text);
}

TEST(thread_arena, containers_travel_with_their_pointers_intact) {
  auto claims = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    auto* b = ::new (arena->allocate(sizeof(belongings))) belongings(arena);
    model m;
    for (unsigned hop = 0; hop < 50; ++hop) {
      change(*b, hop);
      change(m, hop);
      const text* first = b->names.empty() ? nullptr : &b->names.front();
      luggage l = pack(arena);
      spoil(l);
      CLAIM(unpack(l) == arena);
      CLAIM(b->resource() == arena);
      CLAIM(first == nullptr || first == &b->names.front());
      CLAIM(arena->is_valid());
      CLAIM(equal(*b, m));
    }
    b->~belongings();
    arena->deallocate(b, sizeof(belongings));
    CLAIM(arena->is_valid());
    CLAIM(arena->describe().ranges == arena->describe().extents);
  };
  EXPECT_CLAIMS(claims);
}

// Two processes.

void send(int to, const void* data, std::size_t bytes) {
  auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t n = write(to, from, bytes);
    CLAIM(n > 0);
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
}
void receive(int from, void* data, std::size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    ssize_t n = read(from, to, bytes);
    CLAIM(n > 0);
    to += n;
    bytes -= static_cast<std::size_t>(n);
  }
}
void send(int to, const luggage& l) {
  send(to, &l.descriptor, sizeof l.descriptor);
  send(to, l.table.data(), l.table.size() * sizeof(page_range));
  send(to, l.bytes.data(), l.bytes.size());
}
luggage receive(int from) {
  luggage l;
  receive(from, &l.descriptor, sizeof l.descriptor);
  l.table.resize(l.descriptor.entries());
  l.bytes.resize(l.descriptor.bytes);
  receive(from, l.table.data(), l.table.size() * sizeof(page_range));
  receive(from, l.bytes.data(), l.bytes.size());
  return l;
}

TEST(thread_arena, goes_to_and_fro_between_two_processes_and_grows_on_both) {
  auto claims = [] {
    constexpr unsigned hops = 100;
    int ends[2];
    CLAIM(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t other = fork();
    CLAIM(other >= 0);
    int rank = other == 0;
    int line = ends[rank];
    close(ends[1 - rank]);
    map_as(rank);
    if (rank == 1) {
      for (unsigned hop = 1; hop < hops; hop += 2) {
        luggage l = receive(line);
        thread_arena* arena = unpack(l);
        belongings* b;
        receive(line, &b, sizeof b);
        CLAIM(b->resource() == arena);
        change(*b, hop);
        CLAIM(arena->is_valid());
        send(line, pack(arena));
      }
      // The thread ends on the other rank, and its extents come home.
      CLAIM(extents.bytes_taken() > 0);
      std::size_t count;
      receive(line, &count, sizeof count);
      CLAIM(count > 0);
      std::vector<page_range> returned(count);
      receive(line, returned.data(), count * sizeof(page_range));
      for (auto& [address, bytes] : returned) extents.give_back(address, bytes);
      CLAIM(extents.bytes_taken() == 0);
      send(line, "k", 1);
      _exit(0);
    }
    thread_arena* arena = thread_arena::make();
    auto* b = ::new (arena->allocate(sizeof(belongings))) belongings(arena);
    model m;
    for (unsigned hop = 0; hop < hops; hop += 2) {
      change(*b, hop);
      change(m, hop);
      send(line, pack(arena));
      send(line, &b, sizeof b);
      change(m, hop + 1);
      CLAIM(unpack(receive(line)) == arena);
      CLAIM(arena->is_valid());
      CLAIM(equal(*b, m));
    }
    std::vector<page_range> returned = thread_arena::end(arena);
    for (auto& r : returned) CLAIM(addresses.arenas_home(r.address) == 1);
    CLAIM(extents.bytes_taken() == 0);
    std::size_t count = returned.size();
    send(line, &count, sizeof count);
    send(line, returned.data(), count * sizeof(page_range));
    char end;
    receive(line, &end, 1);
    int status;
    CLAIM(waitpid(other, &status, 0) == other && status == 0);
  };
  EXPECT_CLAIMS(claims);
}

// What travels, and what does not.

TEST(thread_arena, a_small_heap_is_a_small_message) {
  auto claims = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    CLAIM(arena->used_pages_bytes() < 512);
    std::pmr::vector<int> v({1, 2, 3, 4, 5}, arena);
    text t("a text that is longer than what a string has in itself", arena);
    CLAIM(arena->used_pages_bytes() < 2048);
    CLAIM(arena->describe().ranges <= 3);
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, pages_of_free_runs_stay_behind) {
  auto claims = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    std::vector<void*> runs;
    for (int i = 0; i < 20; ++i) runs.push_back(arena->allocate(8 * page));
    std::size_t all = arena->used_pages_bytes();
    CLAIM(all >= 160 * page);
    for (std::size_t i = 0; i < 20; ++i) {
      if (i % 2 == 0) arena->deallocate(runs[i], 8 * page);
    }
    CLAIM(arena->used_pages_bytes() == all - 80 * page);
    luggage l = pack(arena);
    for (std::size_t i = 0; i < 20; ++i) CLAIM(in_a_range(l, runs[i], 8 * page) == (i % 2 == 1));
    // Nor does a whole page of freed small blocks travel.
    unpack(l);
    std::vector<void*> blocks;
    for (int i = 0; i < 10000; ++i) blocks.push_back(arena->allocate(48));
    CLAIM(arena->used_pages_bytes() > 480000);
    for (std::size_t i = 1; i < 10000; ++i) arena->deallocate(blocks[i], 48);
    CLAIM(arena->used_pages_bytes() < all - 80 * page + 2 * page);
    CLAIM(arena->is_valid());
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, freed_blocks_are_used_again) {
  auto claims = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    std::uint64_t before = 0;
    for (int round = 0; round < 50; ++round) {
      std::vector<std::pair<void*, std::size_t>> held;
      for (std::size_t i = 0; i < 3000; ++i) {
        std::size_t bytes = 1 + i * 7 % 3000;
        held.emplace_back(arena->allocate(bytes), bytes);
      }
      for (auto [p, bytes] : held) arena->deallocate(p, bytes);
      CLAIM(round == 0 || extents.bytes_taken() == before);
      before = extents.bytes_taken();
    }
    CLAIM(before < 32 * mib);
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, a_large_block_that_is_freed_gives_its_memory_and_its_addresses_back) {
  auto claims = [] {
    map_as(0, 4 * gib);
    thread_arena* arena = thread_arena::make();
    constexpr std::size_t large = 2 * mib;
    auto* p = static_cast<char*>(arena->allocate(large));
    std::memset(p, 1, large);
    arena->deallocate(p, large);
    CLAIM(resident_pages(number(p), large) == 0);
    std::uint64_t before = extents.bytes_taken();
    // The vector grows to a quarter of the partition, and its old eighth is still there meanwhile.
    for (int round = 0; round < 5; ++round) {
      std::pmr::vector<char> v(arena);
      for (std::size_t bytes = mib; bytes <= 64 * mib; bytes *= 2) v.resize(bytes);
    }
    CLAIM(extents.bytes_taken() <= before + 64 * mib);
    CLAIM(arena->is_valid());
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, memory_that_was_left_is_given_back_when_it_becomes_much) {
  auto claims = [] {
    map_as(0, 4 * gib);
    // A large arena gives its memory back at once.
    thread_arena* large = thread_arena::make();
    std::memset(large->allocate(20 * mib), 1, 20 * mib);
    luggage l = pack(large);
    for (std::uint32_t i = 0; i < l.descriptor.extents; ++i) {
      if (l.table[i].bytes > mib) CLAIM(resident_pages(l.table[i].address, l.table[i].bytes) == 0);
    }
    // Small ones give theirs back from time to time, but never the memory of those that came back.
    std::vector<thread_arena*> arenas;
    std::vector<char*> marks;
    std::vector<luggage> left;
    for (int i = 0; i < 1500; ++i) {
      arenas.push_back(thread_arena::make());
      marks.push_back(static_cast<char*>(arenas.back()->allocate(5 * page)));
      std::memset(marks.back(), i, 5 * page);
    }
    for (int round = 0; round < 3; ++round) {
      left.clear();
      for (thread_arena* a : arenas) left.push_back(pack(a));
      std::size_t resident = 0;
      for (auto& x : left) resident += resident_pages(x.table[0].address, x.table[0].bytes);
      CLAIM(resident * page <= 9 * mib);
      CLAIM(resident * page >= 2 * mib);  // the warm ones
      CLAIM(extents.bytes_warm() <= 8 * mib);
      // Some come back, and stay whole while others leave.
      for (std::size_t i = 0; i < left.size(); i += 2) unpack(left[i]);
      for (std::size_t i = 1; i < left.size(); i += 2) unpack(left[i]);
      for (std::size_t i = 0; i < arenas.size(); ++i) {
        CLAIM(arenas[i]->is_valid());
        for (std::size_t k = 0; k < 5 * page; ++k) CLAIM(marks[i][k] == static_cast<char>(i));
      }
      for (std::size_t i = 0; i < left.size(); i += 2) left[i] = pack(arenas[i]);
      for (std::size_t i = 1; i < left.size(); i += 2) {
        CLAIM(arenas[i]->is_valid());
        for (std::size_t k = 0; k < 5 * page; ++k) CLAIM(marks[i][k] == static_cast<char>(i));
      }
      for (std::size_t i = 0; i < left.size(); i += 2) unpack(left[i]);
    }
    for (thread_arena* a : arenas) CLAIM(thread_arena::end(a).empty());
    unpack(l);
    CLAIM(thread_arena::end(large).empty());
    CLAIM(extents.bytes_taken() == 0);
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, in_checked_mode_what_was_left_cannot_be_read) {
  auto claims = [] {
    map_as(0);
    job.checked = true;
    if (!checked()) _exit(0);  // built without checked mode
    auto can_be_read = [](const void* p) {
      int ends[2];
      CLAIM(pipe(ends) == 0);
      bool could = write(ends[1], p, 1) == 1;
      close(ends[0]);
      close(ends[1]);
      return could;
    };
    thread_arena* arena = thread_arena::make();
    char* p = ::new (arena->allocate(100)) char[100]();
    CLAIM(can_be_read(p));
    luggage l = pack(arena);
    CLAIM(!can_be_read(p));
    unpack(l);
    CLAIM(can_be_read(p));
    thread_arena::end(arena);
    CLAIM(!can_be_read(p));
    CLAIM(thread_arena::make() == arena);
    CLAIM(can_be_read(p));
  };
  EXPECT_CLAIMS(claims);
}

// Extents.

TEST(thread_arena, extents_are_used_again_when_an_arena_has_ended) {
  auto claims = [] {
    map_as(0);
    std::uint64_t first = number(thread_arena::make());
    thread_arena::end(reinterpret_cast<thread_arena*>(first));
    for (int i = 0; i < 10000; ++i) {
      thread_arena* arena = thread_arena::make();
      CLAIM(number(arena) == first);
      std::memset(arena->allocate(100), 1, 100);
      CLAIM(thread_arena::end(arena).empty());
    }
    CLAIM(extents.bytes_taken() == 0);
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, a_partition_used_up_throws_and_leaves_all_arenas_usable) {
  auto claims = [] {
    // 1 GiB and 8 ranks: 16 MiB for each.
    map_as(3, 1 * gib, 8);
    thread_arena* arena = thread_arena::make();
    thread_arena* other = thread_arena::make();
    std::vector<char*> blocks;
    CLAIM(throws_bad_alloc([&] {
      for (;;) {
        blocks.push_back(static_cast<char*>(arena->allocate(1000)));
        std::memset(blocks.back(), 3, 1000);
      }
    }));
    CLAIM(blocks.size() * 1000 > 14 * mib);  // little is lost
    CLAIM(extents.bytes_taken() == 16 * mib);
    CLAIM(arena->is_valid());
    CLAIM(throws_bad_alloc([&] { thread_arena::make(); }));
    CLAIM(throws_bad_alloc([&] { (void)arena->allocate(100000); }));
    // Another thread still has room in its own extent.
    std::memset(other->allocate(20000), 1, 20000);
    CLAIM(throws_bad_alloc([&] { (void)other->allocate(60000); }));
    CLAIM(other->is_valid());
    for (char* p : blocks) CLAIM(p[0] == 3 && p[999] == 3);
    for (char* p : blocks) arena->deallocate(p, 1000);
    CLAIM(arena->is_valid());
    std::memset(arena->allocate(100000), 1, 100000);
    CLAIM(thread_arena::end(arena).empty());
    CLAIM(thread_arena::end(other).empty());
    CLAIM(extents.bytes_taken() == 0);
    // The partition is one free stretch again.
    CLAIM(extents.take(16 * mib) != 0);
  };
  EXPECT_CLAIMS(claims);
}

TEST(thread_arena, a_damaged_table_and_a_foreign_block_end_the_rank) {
  auto table = [](std::size_t entry, std::uint64_t by) {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    (void)arena->allocate(5000);
    luggage l = pack(arena);
    l.table[entry].address += by;
    unpack(l);
  };
  EXPECT_DEATH(table(0, 4 * gib), "is damaged");
  EXPECT_DEATH(table(0, 1), "is damaged");
  EXPECT_DEATH(table(1, arena_extents::granule_bytes), "is damaged");
  auto foreign = [] {
    map_as(0);
    char elsewhere[5000];
    thread_arena::make()->deallocate(elsewhere, 5000);
  };
  EXPECT_DEATH(foreign(), "is not of this thread's heap");
  auto twice = [] {
    map_as(0);
    thread_arena* arena = thread_arena::make();
    void* p = arena->allocate(5000);
    arena->deallocate(p, 5000);
    arena->deallocate(p, 5000);
  };
  EXPECT_DEATH(twice(), "is freed twice");
}

}  // namespace
