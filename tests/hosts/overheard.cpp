// SPDX-License-Identifier: Apache-2.0
// Whether words that a rank sends to a rank of another host are found in what it hands to the
// network: as they are (argument `open`), or not at all (`encrypted`).
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

constexpr std::string_view word = "a word that nobody else should read";
long times_seen;
long bytes_sent;

void look_at(const void* from, std::size_t bytes) {
  bytes_sent += static_cast<long>(bytes);
  std::string_view text(static_cast<const char*>(from), bytes);
  for (std::size_t at; (at = text.find(word)) != text.npos; text.remove_prefix(at + word.size()))
    ++times_seen;
}

}  // namespace

// The program's own take the place of the C library's, also for what sends messages.
extern "C" ssize_t send(int socket, const void* from, size_t bytes, int flags) {
  look_at(from, bytes);
  return syscall(SYS_sendto, socket, from, bytes, flags, nullptr, 0);
}
extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  for (std::size_t i = 0; i < message->msg_iovlen; ++i)
    look_at(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
  return syscall(SYS_sendmsg, socket, message, flags);
}

int main(int argc, char** argv) {
  return run(argc, argv, [&] {
    const bool is_encrypted = argc > 1 && std::string_view(argv[1]) == "encrypted";
    const rank_t there = rank_count() - 1 - rank_me();
    CHECK(!is_near(there));
    // Of all lengths: copied into a buffer, and sent from where they lie.
    for (const std::size_t length : {1u, 10u, 1000u, 100'000u}) {
      std::string words;
      for (std::size_t i = 0; i < length; ++i) words += word;
      const bool is_right =
          rpc(
              there,
              [](const std::string& all, std::string one) {
                return all.size() % one.size() == 0 && all.starts_with(one) && all.ends_with(one);
              },
              words, std::string(word))
              .get();
      CHECK(is_right);
    }
    barrier();
    CHECK(bytes_sent > 101'011 * static_cast<long>(word.size()));
    if (is_encrypted) {
      CHECK_EQUAL(times_seen, 0);
    } else {
      CHECK(times_seen >= 101'011);
    }
    return 0;
  });
}
