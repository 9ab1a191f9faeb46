// SPDX-License-Identifier: Apache-2.0
#include "transport/link/sealed_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

using namespace sojourn::detail;

namespace {

using bytes = std::vector<std::byte>;

const seal_keys asks{{1, 2, 3}, {4, 5, 6}};
const seal_keys answers{asks.in, asks.out};

/// Two ends, and somebody between them.
struct way {
  way() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, left), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, right), 0);
  }
  ~way() {
    for (int s : {left[0], left[1], right[0], right[1]}) {
      if (s >= 0) close(s);
    }
  }
  way(const way&) = delete;

  /// What one end has sent.
  bytes overheard() const {
    bytes all;
    std::byte part[4096];
    for (ssize_t n; (n = read(left[1], part, sizeof part)) > 0;)
      all.insert(all.end(), part, part + n);
    return all;
  }
  void pass_on(const bytes& what) const {
    ASSERT_EQ(write(right[0], what.data(), what.size()), static_cast<ssize_t>(what.size()));
  }

  int left[2], right[2];
};

bytes text_of(std::size_t length, unsigned seed) {
  std::minstd_rand random(seed);
  bytes text(length);
  for (auto& b : text) b = static_cast<std::byte>(random());
  return text;
}

ssize_t send_all(sealed_socket& to, const bytes& text) {
  const iovec all{const_cast<std::byte*>(text.data()), text.size()};
  return to.send({&all, 1});
}

/// Bytes that came, up to a number of them, and how receive() ended: -1 or 0.
struct received {
  bytes text;
  ssize_t how;
  int reason;
};
received receive_all(sealed_socket& from, std::size_t most) {
  received all{bytes(most), 1, 0};
  std::size_t done = 0;
  while (done != most) {
    const iovec rest{all.text.data() + done, most - done};
    all.how = from.receive({&rest, 1});
    all.reason = errno;
    if (all.how <= 0) break;
    done += static_cast<std::size_t>(all.how);
  }
  all.text.resize(done);
  return all;
}

TEST(sealed_socket, what_goes_in_comes_out_in_parts_of_all_lengths) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    sealed_socket from(ends[0], asks), to(ends[1], answers);
    std::minstd_rand random(seed);
    const std::size_t longest = seed % 2 == 0 ? 300 : 200'000;
    bytes sent, came;
    std::size_t gone = 0;
    while (came.size() < 1'000'000) {
      if (gone == sent.size()) {
        const bytes more = text_of(1 + random() % longest, static_cast<unsigned>(random()));
        sent.insert(sent.end(), more.begin(), more.end());
      }
      // In up to three parts, some of them empty.
      iovec parts[3];
      std::size_t at = gone;
      for (iovec& p : parts) {
        const std::size_t n = random() % 3 == 0 ? 0 : random() % (sent.size() - at + 1);
        p = {sent.data() + at, n};
        at += n;
      }
      const ssize_t taken = from.send(parts);
      if (taken > 0) gone += static_cast<std::size_t>(taken);
      if (taken < 0) {
        ASSERT_EQ(errno, EAGAIN);
      }
      if (random() % 3 == 0) continue;
      bytes room(1 + random() % longest);
      const std::size_t first = random() % (room.size() + 1);
      const iovec to_parts[2] = {{room.data(), first}, {room.data() + first, room.size() - first}};
      const ssize_t n = to.receive(to_parts);
      if (n < 0) {
        ASSERT_EQ(errno, EAGAIN);
        continue;
      }
      ASSERT_GT(n, 0);
      // receive() gives fewer only when no more have come.
      ASSERT_TRUE(n == static_cast<ssize_t>(room.size()) || !to.has_received());
      came.insert(came.end(), room.begin(), room.begin() + n);
      ASSERT_LE(came.size(), gone);
    }
    EXPECT_TRUE(std::equal(came.begin(), came.end(), sent.begin())) << seed;
    close(ends[0]);
    close(ends[1]);
  }
}

TEST(sealed_socket, nothing_of_what_is_said_can_be_read_on_its_way) {
  const way w;
  sealed_socket from(w.left[0], asks);
  constexpr std::string_view said = "the same words, said twice";
  const auto* begin = reinterpret_cast<const std::byte*>(said.data());
  const bytes text(begin, begin + said.size());
  send_all(from, text);
  const bytes once = w.overheard();
  send_all(from, text);
  const bytes twice = w.overheard();
  for (const bytes& seen : {once, twice}) {
    ASSERT_EQ(seen.size(), seal::head_bytes + text.size() + seal::tag_bytes);
    for (std::size_t length = 4; length <= text.size(); ++length) {
      EXPECT_EQ(std::search(seen.begin(), seen.end(), text.begin(),
                            text.begin() + static_cast<std::ptrdiff_t>(length)),
                seen.end());
    }
  }
  EXPECT_NE(once, twice);
}

TEST(sealed_socket, no_bit_can_be_changed) {
  const bytes text = text_of(50, 1);
  const std::size_t length = seal::head_bytes + text.size() + seal::tag_bytes;
  for (std::size_t bit = 0; bit < 8 * length; ++bit) {
    const way w;
    sealed_socket from(w.left[0], asks), to(w.right[1], answers);
    send_all(from, text);
    bytes changed = w.overheard();
    ASSERT_EQ(changed.size(), length);
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    w.pass_on(changed);
    const received r = receive_all(to, text.size());
    EXPECT_TRUE(r.text.empty()) << bit;
    // If the length was made longer, the rest of the record is waited for.
    EXPECT_TRUE(r.reason == EBADMSG || (r.reason == EAGAIN && bit < 8 * seal::head_bytes)) << bit;
    w.pass_on(bytes(seal::record_most));
    EXPECT_TRUE(receive_all(to, 1).text.empty());
    EXPECT_EQ(errno, EBADMSG) << bit;
    // From then on nothing is taken.
    EXPECT_TRUE(receive_all(to, 1).text.empty());
  }
}

TEST(sealed_socket, records_come_in_their_order_once_and_from_the_other_end_only) {
  const bytes a = text_of(10, 1), b = text_of(10, 2);
  const auto comes = [](const std::vector<bytes>& records, std::size_t length) {
    const way w;
    sealed_socket to(w.right[1], answers);
    for (const bytes& r : records) w.pass_on(r);
    const received r = receive_all(to, length);
    EXPECT_TRUE(r.text.size() == length || r.reason == EBADMSG);
    return r.text;
  };
  const auto sealed = [](const seal_keys& by, const std::vector<bytes>& texts) {
    const way w;
    sealed_socket from(w.left[0], by);
    std::vector<bytes> records;
    for (const bytes& t : texts) {
      send_all(from, t);
      records.push_back(w.overheard());
    }
    return records;
  };
  const std::vector<bytes> records = sealed(asks, {a, b});
  EXPECT_EQ(comes(records, 20).size(), 20u);
  EXPECT_EQ(comes({records[1], records[0]}, 20), bytes{});
  EXPECT_EQ(comes({records[0], records[0]}, 20), a);
  EXPECT_EQ(comes({records[1]}, 10), bytes{});
  // Records as this end itself would send them, and records of another connection.
  EXPECT_EQ(comes(sealed(answers, {a}), 10), bytes{});
  EXPECT_EQ(comes(sealed({{7}, {8}}, {a}), 10), bytes{});
}

TEST(sealed_socket, a_part_of_a_record_is_waited_for_and_not_given_at_the_end) {
  const way w;
  sealed_socket from(w.left[0], asks), to(w.right[1], answers);
  const bytes text = text_of(1000, 1);
  send_all(from, text);
  const bytes record = w.overheard();
  for (std::size_t at = 0; at + 1 < record.size(); ++at) {
    w.pass_on({record[at]});
    ASSERT_EQ(receive_all(to, 1).reason, EAGAIN);
    ASSERT_FALSE(to.has_received());
  }
  shutdown(w.right[0], SHUT_WR);
  const received r = receive_all(to, 1);
  EXPECT_EQ(r.how, 0);
  EXPECT_TRUE(r.text.empty());
}

TEST(sealed_socket, what_it_has_taken_leaves_when_there_is_room) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  sealed_socket from(ends[0], asks), to(ends[1], answers);
  const bytes text = text_of(100'000, 3);
  std::size_t taken = 0;
  for (ssize_t n; (n = send_all(from, text)) >= 0;) taken += static_cast<std::size_t>(n);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(from.has_unsent());
  std::size_t came = 0;
  while (came < taken) {
    const std::size_t now = receive_all(to, taken - came).text.size();
    came += now;
    const ssize_t nothing = from.send({});
    ASSERT_TRUE(nothing == 0 || errno == EAGAIN);
  }
  EXPECT_FALSE(from.has_unsent());
  close(ends[1]);
  EXPECT_GT(send_all(from, text), 0);
  EXPECT_LT(send_all(from, text), 0);  // says that the text before has not left
  EXPECT_EQ(errno, EPIPE);
  close(ends[0]);
}

TEST(seal, goes_on_over_the_ends_of_keys) {
  constexpr std::uint64_t records = 4;
  seal out(asks.out, seal::direction::out, records), in(answers.in, seal::direction::in, records);
  std::vector<bytes> seen;
  for (int i = 0; i < 20; ++i) {
    bytes record(seal::head_bytes + 9 + seal::tag_bytes, std::byte{0});
    std::byte* const text = record.data() + seal::head_bytes;
    out.begin(record.data(), 9);
    out.go_on(text, text, 4);
    out.go_on(text + 4, text + 4, 5);
    out.end(text + 9);
    EXPECT_EQ(std::find(seen.begin(), seen.end(), record), seen.end());
    seen.push_back(record);
    in.begin(record.data(), 9);
    in.go_on(text, text, 9);
    EXPECT_TRUE(in.end(text + 9)) << i;
    EXPECT_EQ(bytes(text, text + 9), bytes(9, std::byte{0}));
  }
  // When only one end takes the next key, nothing is understood.
  seal early(asks.out, seal::direction::out, records),
      late(answers.in, seal::direction::in, 2 * records);
  for (std::uint64_t i = 0; i <= records; ++i) {
    bytes record(seal::head_bytes + 1 + seal::tag_bytes);
    std::byte* const text = record.data() + seal::head_bytes;
    early.begin(record.data(), 1);
    early.go_on(text, text, 1);
    early.end(text + 1);
    late.begin(record.data(), 1);
    late.go_on(text, text, 1);
    EXPECT_EQ(late.end(text + 1), i < records);
  }
}

}  // namespace
