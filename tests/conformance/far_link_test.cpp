// SPDX-License-Identifier: Apache-2.0
// What comes over a connection from a rank that breaks off, or that sends what no rank sends.
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <utility>

#include "far_job.hpp"

namespace {

using namespace conformance;
using sojourn::detail::far_frame;

/// Rank 1 of a job of two hosts, and the other end of its connection in place of rank 0.
struct rank_of_stranger {
  rank_of_stranger() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) throw std::bad_alloc();
    stranger = ends[0];
    job.link_of(1).lose(0);
    job.link_of(1).connected(0, {ends[1]});
  }
  ~rank_of_stranger() { close(stranger); }

  void sends(const std::vector<std::byte>& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n = send(stranger, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n > 0) at += static_cast<std::size_t>(n);
      take();
      if (n < 0 && is_broken()) return;
    }
    take();
  }
  void take() {
    for (const auto& m : poll(job.at(1))) got.push_back(m.ticket);
  }
  bool is_broken() {
    const char* reason = nullptr;
    if (job.link_of(1).next_broken(reason) == 0) why = reason;
    return !why.empty();
  }

  far_job job{2};
  int stranger;
  std::vector<std::uint64_t> got;
  std::string why;
};

void append(std::vector<std::byte>& to, const far_frame& head) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&head);
  to.insert(to.end(), bytes, bytes + sizeof head);
  to.insert(to.end(), head.bytes, std::byte{7});
}

/// So many messages as rank 0 would send them, of all lengths.
std::vector<std::byte> messages(std::minstd_rand& random, int count) {
  std::vector<std::byte> all;
  std::uint32_t numbers[2] = {};
  for (int i = 0; i < count; ++i) {
    far_frame head{};
    head.kind = static_cast<std::uint16_t>(random() % 3);
    head.ticket = static_cast<std::uint64_t>(i) + 1;
    if (head.kind != far_frame::only_heard) {
      head.bytes =
          static_cast<std::uint32_t>(random() % 8 == 0 ? random() % 40'000 : random() % 500);
      head.number = ++numbers[head.kind];
    }
    append(all, head);
  }
  return all;
}

TEST(far_link, a_connection_that_ends_is_told_of_once) {
  rank_of_stranger r;
  std::minstd_rand random(1);
  auto bytes = messages(random, 20);
  bytes.resize(bytes.size() - 1);
  r.sends(bytes);
  EXPECT_FALSE(r.is_broken());
  shutdown(r.stranger, SHUT_WR);
  r.take();
  EXPECT_TRUE(r.is_broken());
  EXPECT_EQ(r.why, "the connection was closed");
  const char* why = nullptr;
  r.take();
  EXPECT_EQ(r.job.link_of(1).next_broken(why), -1);
  // What it goes on to say to that rank has room, and goes nowhere, once the rank is lost.
  r.job.at(1).lose(0);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(send(r.job.at(1), 0, message_class::request, 1, 1000));
}

TEST(far_link, what_was_changed_on_its_way_ends_the_connection_behind_what_was_not) {
  for (const std::size_t changed : {0u, 1u, 2u}) {
    int ends[2], way[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, way), 0);
    const sojourn::detail::seal_keys keys{{1}, {2}};
    far_job job(2);
    job.link_of(1).lose(0);
    job.link_of(1).connected(0, {ends[1], sojourn::detail::seal_keys{keys.in, keys.out}});
    sojourn::detail::sealed_socket stranger(way[0], keys);
    // Three messages, a record each, which come together.
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<std::byte> message;
      far_frame head{};
      head.bytes = 100;
      head.number = static_cast<std::uint32_t>(i + 1);
      head.ticket = i + 1;
      append(message, head);
      const iovec part{message.data(), message.size()};
      ASSERT_EQ(stranger.send({&part, 1}), static_cast<ssize_t>(message.size()));
      std::byte record[1000];
      const ssize_t n = read(way[1], record, sizeof record);
      ASSERT_GT(n, 0);
      if (i == changed) record[n / 2] ^= std::byte{1};
      all.insert(all.end(), record, record + n);
    }
    ASSERT_EQ(write(ends[0], all.data(), all.size()), static_cast<ssize_t>(all.size()));
    std::size_t came = 0;
    // As a rank does that is woken once.
    for (int i = 0; i < 2; ++i) {
      came += poll(job.at(1)).size();
      job.link_of(1).pump(true);
    }
    came += poll(job.at(1)).size();
    EXPECT_EQ(came, changed);
    const char* why = nullptr;
    EXPECT_EQ(job.link_of(1).next_broken(why), 0);
    EXPECT_STREQ(why, "what came over it was not what the other rank has sent");
    for (int s : {ends[0], way[0], way[1]}) close(s);
  }
}

TEST(far_link, what_came_before_a_connection_ended_arrives_though_this_rank_sends) {
  for (const int messages : {1, 5, 60}) {
    rank_of_stranger r;
    for (int i = 1; i <= messages; ++i) {
      std::vector<std::byte> bytes;
      far_frame head{};
      head.bytes = 1000;
      head.number = static_cast<std::uint32_t>(i);
      head.ticket = static_cast<std::uint64_t>(i);
      append(bytes, head);
      ASSERT_EQ(send(r.stranger, bytes.data(), bytes.size(), 0),
                static_cast<ssize_t>(bytes.size()));
    }
    close(std::exchange(r.stranger, -1));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(send(r.job.at(1), 0, message_class::request, 1, 100));
    for (int i = 0; i < 3; ++i) r.take();
    EXPECT_EQ(r.got.size(), static_cast<std::size_t>(messages));
    EXPECT_TRUE(r.is_broken());
  }
}

/// A reply that has a place is received there, and no other memory is taken for it.
template <class Job>
void reply_comes_where_it_belongs() {
  static std::vector<std::byte> place;
  static constexpr std::size_t bytes = 1'000'000;
  place.assign(bytes + 3, std::byte{0});
  Job job(2);
  job.at(1).place_replies([](int source, std::uint16_t handler, std::uint16_t flags,
                             std::uint64_t ticket, std::size_t length) -> std::byte* {
    EXPECT_EQ(source, 0);
    EXPECT_EQ(handler, 5);
    EXPECT_EQ(flags, 6);
    EXPECT_EQ(length, bytes);
    return ticket == 7 ? place.data() + 1 : nullptr;
  });
  ASSERT_TRUE(send(job.at(0), 1, message_class::reply, 8, bytes, 5, 6));
  ASSERT_TRUE(send(job.at(0), 1, message_class::reply, 7, bytes, 5, 6));
  std::vector<const std::byte*> came;
  for (int i = 0; i < 10'000 && came.size() < 2; ++i) {
    job.settle();
    struct context {
      sojourn::detail::transport& at;
      std::vector<const std::byte*>& came;
    } c{job.at(1), came};
    job.at(1).poll(
        [](sojourn::detail::arrival& m, void* p) {
          auto& to = *static_cast<context*>(p);
          EXPECT_EQ(m.bytes, bytes);
          bool is_right = true;
          for (std::size_t b = 0; b < m.bytes; ++b)
            is_right &= m.payload[b] == std::byte{byte_of(m.ticket, b)};
          EXPECT_TRUE(is_right);
          to.came.push_back(m.payload);
          to.at.consume(m);
          return false;
        },
        &c, 10);
  }
  ASSERT_EQ(came.size(), 2u);
  EXPECT_NE(came[0], place.data() + 1);
  EXPECT_EQ(came[1], place.data() + 1);
  EXPECT_EQ(place.front(), std::byte{0});
  EXPECT_EQ(place[bytes + 1], std::byte{0});
}

TEST(far_link, a_long_reply_comes_where_it_belongs) {
  reply_comes_where_it_belongs<far_job>();
  reply_comes_where_it_belongs<far_sealed_job>();
  if (ucx_job::is_here()) reply_comes_where_it_belongs<ucx_job>();
}

/// A payload that is lent is read where it lies, and returned once: when it has left, or when the
/// rank that it goes to is lost.
template <class Job>
void payloads_are_lent_and_returned() {
  constexpr std::size_t length = 100'000;
  constexpr std::uint64_t ticket = 9;
  std::vector<std::byte> mine(length);
  for (std::size_t i = 0; i < length; ++i) mine[i] = std::byte{byte_of(ticket, i)};
  int returned = 0;
  const sojourn::detail::transport::loan lent{
      mine.data(), length, [](void* count) { ++*static_cast<int*>(count); }, &returned};
  Job job(2);
  // There is room for some that nobody reads.
  int given = 0;
  while (given < 100 && job.at(0).lend(1, message_class::reply, 1, 0, ticket, lent)) ++given;
  EXPECT_GT(given, 4);
  job.settle();
  EXPECT_LT(returned, given);
  int came = 0;
  for (int i = 0; i < 10'000 && came < given - 2; ++i) {
    for (const auto& m : poll(job.at(1), 1)) {
      EXPECT_TRUE(content_is_right(m));
      EXPECT_EQ(m.bytes.size(), length);
      ++came;
    }
    job.settle();
  }
  EXPECT_GE(came, given - 2);
  EXPECT_GE(returned, came);
  job.at(0).lose(1);
  EXPECT_EQ(returned, given);
  // What is short is copied anyway.
  EXPECT_FALSE(
      job.at(0).lend(1, message_class::reply, 1, 0, ticket, {mine.data(), 100, nullptr, nullptr}));
}

TEST(far_link, payloads_are_lent_and_returned_once) {
  payloads_are_lent_and_returned<far_job>();
  payloads_are_lent_and_returned<far_sealed_job>();
  if (ucx_job::is_here()) payloads_are_lent_and_returned<ucx_job>();
}

TEST(far_link, payloads_for_ranks_of_the_same_host_are_copied) {
  far_job job(4);
  std::vector<std::byte> mine(100'000);
  EXPECT_FALSE(job.at(0).lend(1, message_class::reply, 1, 0, 1,
                              {mine.data(), mine.size(), nullptr, nullptr}));
}

TEST(far_link, a_bell_that_rings_late_costs_one_look) {
  far_job job(2);
  job.ring(1);
  timespec before, after;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  const std::uint64_t until = sojourn::now_ns() + 200'000'000;
  job.at(1).wait([] { return false; }, nullptr, until);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  EXPECT_GE(sojourn::now_ns(), until);
  EXPECT_LT((after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec,
            50'000'000);
}

TEST(far_link, what_no_rank_sends_breaks_the_connection_and_nothing_else) {
  constexpr int inputs = 3000;
  int broken = 0;
  for (unsigned seed = 1; seed <= inputs; ++seed) {
    std::minstd_rand random(seed);
    auto bytes = messages(random, 12);
    switch (random() % 4) {
      case 0:  // random bytes
        for (auto& b : bytes) b = static_cast<std::byte>(random());
        break;
      case 1:  // some changed
        for (int i = 0; i < 4; ++i)
          bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        break;
      case 2: {  // cut out
        const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size());
        bytes.erase(from, from + std::min<std::ptrdiff_t>(bytes.end() - from, 1 + random() % 64));
        break;
      }
      default:  // again
        bytes.insert(bytes.end(), bytes.begin(), bytes.end());
    }
    rank_of_stranger r;
    r.sends(bytes);
    broken += r.is_broken();
    // Its other ranks are as they were.
    ASSERT_TRUE(send(r.job.at(1), 1, message_class::request, 99, 10));
    ASSERT_EQ(poll(r.job.at(1)).back().ticket, 99u);
  }
  EXPECT_GT(broken, inputs / 2);
}

}  // namespace
