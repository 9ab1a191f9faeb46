// SPDX-License-Identifier: Apache-2.0
// Shared memory given to the system and to libraries: the pages may be on other ranks.
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sojourn/sojourn.hpp>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page = 4096;
constexpr std::size_t pages = 9;
constexpr std::size_t bytes = pages * page;

bool is_lmw() {
  const char* how = std::getenv("SOJOURN_SHARED");
  return how == nullptr || std::string_view(how) == "lmw";
}

/// The same address on all ranks: allocated on one.
template <class T>
T* alloc_on(rank_t rank, std::size_t count) {
  std::uintptr_t at = 0;
  if (rank_me() == rank) at = reinterpret_cast<std::uintptr_t>(shared::alloc<T>(count));
  return reinterpret_cast<T*>(broadcast(at, rank));
}

unsigned char value(std::size_t i, int round) {
  return static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(round) * 31 + 1);
}
void fill(unsigned char* to, int round) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = value(i, round);
}
bool is_filled(const unsigned char* from, int round, std::size_t count = bytes) {
  for (std::size_t i = 0; i < count; ++i)
    if (from[i] != value(i, round)) return false;
  return true;
}

/// Every second page was stored to by another rank last: on this one it is absent, or only to load.
void scatter(unsigned char* all) {
  shared::barrier();
  for (std::size_t p = 0; p < pages; ++p)
    if (static_cast<int>(p) % rank_count() == (rank_me() + 1) % rank_count()) ++all[p * page];
  shared::barrier();
}

struct file {
  std::FILE* stream = std::tmpfile();
  ~file() { std::fclose(stream); }
  int fd() const { return fileno(stream); }
};
struct pair_of_sockets {
  explicit pair_of_sockets(int kind) { CHECK_EQUAL(socketpair(AF_UNIX, kind, 0, ends.data()), 0); }
  ~pair_of_sockets() {
    close(ends[0]);
    close(ends[1]);
  }
  std::array<int, 2> ends;
};

constexpr auto all_bytes = static_cast<ssize_t>(bytes);

/// Each rank in turn, because the others' pages go away meanwhile.
template <class F>
void in_turn(F f) {
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (r == rank_me()) f();
    shared::barrier();
  }
}

void the_system_itself_does_not_wait_for_pages() {
  if (rank_count() == 1) return;
  auto* all = alloc_on<unsigned char>(0, bytes);
  scatter(all);
  if (rank_me() == 0) {
    file f;
    std::vector<unsigned char> own(bytes);
    fill(own.data(), 1);
    CHECK_EQUAL(pwrite(f.fd(), own.data(), bytes, 0), all_bytes);
    const ssize_t got = pread(f.fd(), all, bytes, 0);
    CHECK(got <
          all_bytes);  // EFAULT, or a short count: this is why there is sojourn::shared::pread
  }
  shared::barrier();
}

void files_are_read_and_written_as_a_whole() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  for (int round = 0; round < 4; ++round) {
    scatter(all);
    in_turn([&] {
      file f;
      std::vector<unsigned char> own(bytes);
      fill(own.data(), round);
      CHECK_EQUAL(pwrite(f.fd(), own.data(), bytes, 0), all_bytes);
      lseek(f.fd(), 0, SEEK_SET);
      CHECK_EQUAL(shared::read(f.fd(), all, bytes), all_bytes);
      CHECK(is_filled(all, round));
      errno = 0;
      CHECK_EQUAL(shared::read(-1, all, bytes), -1);
      CHECK_EQUAL(errno, EBADF);
    });
    scatter(all);
    in_turn([&] {
      file f;
      if (rank_me() == 0) fill(all, round + 1);
      CHECK_EQUAL(shared::write(f.fd(), all, bytes), all_bytes);
      CHECK_EQUAL(shared::pwrite(f.fd(), all, bytes, all_bytes), all_bytes);
      std::vector<unsigned char> own(2 * bytes);
      CHECK_EQUAL(pread(f.fd(), own.data(), 2 * bytes, 0), 2 * all_bytes);
      CHECK(is_filled(own.data(), round + 1) && is_filled(own.data() + bytes, round + 1));
      CHECK_EQUAL(shared::pread(f.fd(), all, bytes, all_bytes), all_bytes);
    });
  }
}

void vectors_may_lie_in_shared_memory_themselves() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  auto* vectors = alloc_on<iovec>(rank_count() - 1, 3);
  if (rank_me() == 0) {
    vectors[0] = {all + 5 * page, 4 * page};
    vectors[1] = {all, page};
    vectors[2] = {all + page, 4 * page};
  }
  scatter(all);
  in_turn([&] {
    file f;
    std::vector<unsigned char> own(bytes);
    fill(own.data(), 3);
    CHECK_EQUAL(pwrite(f.fd(), own.data(), bytes, 0), all_bytes);
    CHECK_EQUAL(shared::readv(f.fd(), vectors, 3), all_bytes);
    CHECK(is_filled(all + 5 * page, 3, 4 * page));
    CHECK_EQUAL(std::memcmp(all, own.data() + 4 * page, 5 * page), 0);
    CHECK_EQUAL(shared::writev(f.fd(), vectors, 3), all_bytes);
    CHECK_EQUAL(pread(f.fd(), own.data(), bytes, all_bytes), all_bytes);
    CHECK(is_filled(own.data(), 3));
  });
}

void no_datagram_is_lost() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  for (int round = 0; round < 4; ++round) {
    scatter(all);
    in_turn([&] {
      pair_of_sockets s(SOCK_DGRAM);
      std::vector<unsigned char> own(bytes);
      fill(own.data(), round);
      for (int k = 0; k < 3; ++k) CHECK_EQUAL(send(s.ends[0], own.data(), bytes, 0), all_bytes);
      CHECK_EQUAL(shared::recv(s.ends[1], all, bytes, 0), all_bytes);
      CHECK(is_filled(all, round));
      CHECK_EQUAL(shared::recvfrom(s.ends[1], all, bytes, 0, nullptr, nullptr), all_bytes);
      iovec halves[2] = {{all, 4 * page}, {all + 4 * page, 5 * page}};
      msghdr m = {};
      m.msg_iov = halves;
      m.msg_iovlen = 2;
      CHECK_EQUAL(shared::recvmsg(s.ends[1], &m, 0), all_bytes);
      CHECK(is_filled(all, round));
      CHECK(m.msg_iov == halves);
    });
    scatter(all);
    in_turn([&] {
      pair_of_sockets s(SOCK_DGRAM);
      if (rank_me() == 0) fill(all, round);
      iovec whole = {all, bytes};
      msghdr m = {};
      m.msg_iov = &whole;
      m.msg_iovlen = 1;
      CHECK_EQUAL(shared::send(s.ends[0], all, bytes, 0), all_bytes);
      CHECK_EQUAL(shared::sendto(s.ends[0], all, bytes, 0, nullptr, 0), all_bytes);
      CHECK_EQUAL(shared::sendmsg(s.ends[0], &m, 0), all_bytes);
      std::vector<unsigned char> own(bytes);
      for (int k = 0; k < 3; ++k) {
        CHECK_EQUAL(recv(s.ends[1], own.data(), bytes, 0), all_bytes);
        CHECK(is_filled(own.data(), round));
      }
    });
  }
}

void stdio_reads_and_writes_shared_memory() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  auto* text = reinterpret_cast<char*>(all + page);
  auto* number = reinterpret_cast<int*>(all + 3 * page);
  scatter(all);
  in_turn([&] {
    file f;
    if (rank_me() == 0) fill(all, 5);
    CHECK_EQUAL(shared::fwrite(all, 1, bytes, f.stream), bytes);
    CHECK_EQUAL(shared::fwrite(all + page, 8, 3, f.stream), std::size_t{3});
    std::rewind(f.stream);
    CHECK_EQUAL(shared::fread(all, 1, bytes, f.stream), bytes);
    CHECK(is_filled(all, 5));
    CHECK_EQUAL(shared::fread(all + page, 8, 9, f.stream), std::size_t{3});
    CHECK(std::feof(f.stream) != 0);
  });
  scatter(all);
  in_turn([&] {
    file f;
    std::fputs("one line\n17 words\n", f.stream);
    std::rewind(f.stream);
    CHECK(sojourn_shared_fgets(text, 100, f.stream) == text);
    CHECK_EQUAL(std::string(text), "one line\n");
    CHECK_EQUAL(sojourn_shared_fscanf(f.stream, "%d %90s", number, text), 2);
    CHECK_EQUAL(*number, 17);
    std::rewind(f.stream);
    CHECK(sojourn_shared_fputs(text, f.stream) >= 0);
    CHECK_EQUAL(sojourn_shared_fprintf(f.stream, "%s %d", text, *number), 8);
    std::rewind(f.stream);
    char own[100] = {};
    CHECK(std::fgets(own, sizeof own, f.stream) == own);
    CHECK_EQUAL(std::string(own).substr(0, 13), "wordswords 17");
  });
}

/// Not a fiber: it cannot wait for a page.
template <class F>
void in_a_thread_of_the_system(F f) {
  std::thread(f).join();
}

void what_is_pinned_can_be_used_by_threads_of_the_system() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  for (int round = 0; round < 8; ++round) {
    scatter(all);
    in_turn([&] {
      const shared::pinned again(all + 10, 2 * page);  // pins nest
      const shared::pinned whole(all, bytes, shared::access::stores);
      in_a_thread_of_the_system([&] { fill(all, round); });
    });
    CHECK(is_filled(all, round));
    shared::barrier();
  }
}

// Under the other protocols nobody may wait for others while pages are pinned.
void pages_that_are_pinned_under_lmw_follow_what_others_store() {
  if (!is_lmw()) return;
  auto* all = alloc_on<unsigned char>(0, bytes);
  auto* lock = alloc_on<shared::mutex>(0, 1);
  const auto me = static_cast<std::size_t>(rank_me());
  const auto ranks = static_cast<std::size_t>(rank_count());
  const shared::pinned whole(all, bytes, shared::access::stores);
  for (int round = 0; round < 12; ++round) {
    in_a_thread_of_the_system([&] {
      for (std::size_t i = me; i < bytes; i += ranks) all[i] = value(i, round);
    });
    shared::barrier();
    in_a_thread_of_the_system([&] { CHECK(is_filled(all, round)); });
    shared::barrier();
    lock->lock();
    in_a_thread_of_the_system([&] { ++all[7 * page]; });
    lock->unlock();
    shared::barrier();
    CHECK_EQUAL(all[7 * page], static_cast<unsigned char>(value(7 * page, round) + rank_count()));
    shared::barrier();
  }
}

int sum_of(shared::pointer<const unsigned char> from, std::size_t count) {
  int sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += from[i];
  return sum;
}

void calls_bring_pinned_pages_up_to_date() {
  if (!is_lmw()) return;
  auto* all = alloc_on<unsigned char>(0, bytes);
  const shared::pinned whole(all, bytes);
  for (int round = 0; round < 10; ++round) {
    if (rank_me() == 0) {
      for (std::size_t i = 0; i < bytes; i += 97) all[i] = static_cast<unsigned char>(round + 1);
      int expected = 0;
      for (std::size_t i = 0; i < bytes; ++i) expected += all[i];
      for (rank_t r = 0; r < rank_count(); ++r)
        CHECK_EQUAL(rpc(r, sum_of, shared::pointer<const unsigned char>(all), bytes).get(),
                    expected);
    }
    barrier();
  }
}

void two_ranks_that_pin_the_same_pages_take_turns() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  auto* count = alloc_on<long>(rank_count() - 1, 1);
  auto* lock = alloc_on<shared::mutex>(0, 1);
  for (int round = 0; round < 40; ++round) {
    const shared::pinned mine(all + (round % 3) * static_cast<int>(page), 5 * page,
                              round % 2 == 0 ? shared::access::stores : shared::access::loads);
    in_a_thread_of_the_system([&] { (void)*static_cast<volatile unsigned char*>(all + 4 * page); });
  }
  for (int round = 0; round < 10; ++round) {
    lock->lock();
    ++*count;
    lock->unlock();
  }
  shared::barrier();
  CHECK_EQUAL(*count, 10L * rank_count());
  shared::barrier();
}

void in_an_undivided_section_no_other_fiber_runs() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  for (int round = 0; round < 3; ++round) {
    scatter(all);
    int ran = 0;
    bool ends = false;
    thread other = spawn(
        thread_options{.pinned = true},
        [](std::uintptr_t counter, std::uintptr_t end) {
          while (!*reinterpret_cast<bool*>(end)) {
            ++*reinterpret_cast<int*>(counter);
            yield();
          }
        },
        reinterpret_cast<std::uintptr_t>(&ran), reinterpret_cast<std::uintptr_t>(&ends));
    while (ran == 0) yield();
    {
      const shared::undivided alone;
      const int before = ran;
      int sum = 0;
      for (std::size_t p = 0; p < pages; ++p)
        sum += static_cast<volatile unsigned char*>(all)[p * page];
      CHECK(sum >= 0);
      CHECK_EQUAL(ran, before);
    }
    ends = true;
    other.join();
  }
  shared::barrier();
}

void no_checkpoint_is_taken_while_pages_are_pinned() {
  auto* all = alloc_on<unsigned char>(0, bytes);
  if (rank_me() == 0) sojourn_shared_pin(all, bytes, 0);
  std::string why;
  try {
    checkpoint("/tmp/never_written", 1);
  } catch (const checkpoint_error& e) {
    why = e.what();
  }
  CHECK(why.find("shared memory is pinned") != std::string::npos);
  if (rank_me() == 0) sojourn_shared_unpin(all, bytes, 0);
  shared::barrier();
}

// --- Bulk data

constexpr std::size_t many = (5u << 20) / sizeof(long);
long sum_of_values(std::span<const long> values) {
  long sum = 0;
  for (long v : values) sum += v;
  return sum;
}

struct remote_values {
  std::array<long, 40000> values = {};
};

void long_arguments_and_copies_may_lie_on_pages_that_are_elsewhere() {
  auto* all = alloc_on<long>(0, many);
  const auto ranks = static_cast<std::size_t>(rank_count());
  for (std::size_t i = static_cast<std::size_t>(rank_me()); i < many; i += ranks)
    all[i] = static_cast<long>(i);
  shared::barrier();
  const long expected = static_cast<long>(many) * static_cast<long>(many - 1) / 2;
  const rank_t next = (rank_me() + 1) % rank_count();
  in_turn([&] {
    CHECK_EQUAL(rpc(next, sum_of_values, std::span<const long>(all, many)).get(), expected);
  });
  auto there = make<remote_values>(next);
  const auto first = global_ptr<long>::at(there.address());
  in_turn([&] {
    for (std::size_t i = 0; i < 40000; ++i) all[i] = static_cast<long>(i) + rank_me();
    put(std::span<const long>(all, 40000), first);
  });
  in_turn([&] {
    get(first, std::span<long>(all + 40000, 40000));
    for (std::size_t i = 0; i < 40000; ++i)
      CHECK_EQUAL(all[40000 + i], static_cast<long>(i) + rank_me());
  });
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("the system itself does not wait for pages",
                 the_system_itself_does_not_wait_for_pages);
    check::claim("files are read and written as a whole", files_are_read_and_written_as_a_whole);
    check::claim("vectors may lie in shared memory themselves",
                 vectors_may_lie_in_shared_memory_themselves);
    check::claim("no datagram is lost", no_datagram_is_lost);
    check::claim("stdio reads and writes shared memory", stdio_reads_and_writes_shared_memory);
    check::claim("what is pinned can be used by threads of the system",
                 what_is_pinned_can_be_used_by_threads_of_the_system);
    check::claim("pages that are pinned under lmw follow what others store",
                 pages_that_are_pinned_under_lmw_follow_what_others_store);
    check::claim("calls bring pinned pages up to date", calls_bring_pinned_pages_up_to_date);
    check::claim("two ranks that pin the same pages take turns",
                 two_ranks_that_pin_the_same_pages_take_turns);
    check::claim("no checkpoint is taken while pages are pinned",
                 no_checkpoint_is_taken_while_pages_are_pinned);
    check::claim("in an undivided section no other fiber runs",
                 in_an_undivided_section_no_other_fiber_runs);
    check::claim("long arguments and copies may lie on pages that are elsewhere",
                 long_arguments_and_copies_may_lie_on_pages_that_are_elsewhere);
    return check::verdict();
  });
}
