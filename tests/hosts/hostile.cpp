// SPDX-License-Identifier: Apache-2.0
// A stranger who can reach a port of a job and does not know its secret: calls N times, each time
// with one of the tricks below, as the seed says. Nothing that it says may be answered by more than
// a challenge. Ends with status 1 where something was; when it is asked to end (SIGTERM), sooner.
// Usage: hostile PORT N SEED
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <utility>

// As hosts/handshake.hpp has it; written again here, so that a change of either is noticed.
namespace {

constexpr std::size_t hello_bytes = 40;
constexpr std::size_t challenge_bytes = 48;
constexpr std::size_t proof_bytes = 32;

volatile std::sig_atomic_t is_enough = 0;

std::mt19937_64 generator;
std::size_t below(std::size_t n) { return static_cast<std::size_t>(generator() % n); }
std::string noise(std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(generator());
  return bytes;
}

/// In order, for a rank or an agent that may exist.
std::string hello(std::uint32_t what_for, std::uint32_t from, std::uint32_t to) {
  std::string bytes = "SJOURN01";
  for (std::uint32_t word : {std::uint32_t{2}, what_for, from, to})
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  return bytes + noise(16);
}
std::string some_hello() {
  return hello(1 + static_cast<std::uint32_t>(below(2)), static_cast<std::uint32_t>(below(5)),
               static_cast<std::uint32_t>(below(5)));
}

class call {
 public:
  explicit call(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_open_ = connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  call(call&& from) noexcept : socket_(std::exchange(from.socket_, -1)), is_open_(from.is_open_) {}
  ~call() {
    if (socket_ < 0) return;
    // Leaves no connection behind in the kernel.
    const linger none{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(socket_);
  }

  bool is_open() const { return is_open_; }
  void say(const std::string& bytes) const {
    (void)send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// So many bytes, or fewer when the other side hangs up or says nothing for two seconds.
  std::string hear(std::size_t most) const {
    std::string heard;
    while (heard.size() < most) {
      pollfd wait{socket_, POLLIN, 0};
      if (poll(&wait, 1, 2000) != 1) break;
      char block[256];
      const ssize_t n = recv(socket_, block, std::min(sizeof block, most - heard.size()), 0);
      if (n <= 0) break;
      heard.append(block, static_cast<std::size_t>(n));
    }
    return heard;
  }

 private:
  int socket_;
  bool is_open_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("hostile PORT N SEED\n", stderr), 2;
  const int port = std::atoi(argv[1]);
  const long calls = std::atol(argv[2]);
  std::signal(SIGTERM, [](int) { is_enough = 1; });
  generator.seed(static_cast<std::uint64_t>(std::atol(argv[3])));
  std::deque<call> silent;  // They take a place until they are thrown out, or these are too many.
  std::string last_hello = some_hello();
  std::string last_proof = noise(proof_bytes);
  std::array<long, 8> tried{};
  long challenged = 0;
  long i = 0;
  for (; i < calls && is_enough == 0; ++i) {
    call c(port);
    if (!c.is_open()) {
      // Before the job and after it nobody listens; and its places may be taken, by us.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    const std::size_t trick = below(tried.size());
    ++tried[trick];
    std::string challenge;
    switch (trick) {
      case 0:  // anything
        c.say(noise(hello_bytes + below(4096)));
        break;
      case 1:  // a hello that is not whole
        c.say(some_hello().substr(0, below(hello_bytes)));
        break;
      case 2: {  // one with a bit changed, perhaps of the version or of whom it is from
        std::string bytes = some_hello();
        bytes[below(bytes.size())] ^= static_cast<char>(1u << below(8));
        c.say(bytes + noise(proof_bytes));
        break;
      }
      case 3:  // a pair that cannot be
        c.say(hello(static_cast<std::uint32_t>(below(4)), static_cast<std::uint32_t>(generator()),
                    static_cast<std::uint32_t>(generator())));
        c.say(noise(proof_bytes));
        break;
      case 4:  // a proof that was guessed
        c.say(last_hello = some_hello());
        challenge = c.hear(challenge_bytes);
        c.say(last_proof = noise(proof_bytes));
        break;
      case 5:  // what was said before, again
        c.say(last_hello);
        challenge = c.hear(challenge_bytes);
        c.say(last_proof);
        break;
      case 6:  // the other side's own proof
        c.say(last_hello = some_hello());
        challenge = c.hear(challenge_bytes);
        if (challenge.size() == challenge_bytes)
          c.say(challenge.substr(challenge_bytes - proof_bytes));
        break;
      default:  // nothing more
        if (below(2) == 0) c.say(some_hello());
        silent.push_back(std::move(c));
        if (silent.size() > 100) silent.pop_front();
        continue;
    }
    if (challenge.size() == challenge_bytes) ++challenged;
    // Where a challenge was heard, nothing may follow; otherwise no more than one.
    const std::size_t allowed = challenge.empty() && trick >= 2 ? challenge_bytes : 0;
    if (trick == 1) continue;  // it is waited for, and is told nothing
    const std::string more = c.hear(allowed + 1);
    if (more.size() > allowed) {
      std::printf("trick %zu was answered by %zu bytes\n", trick, more.size());
      return 1;
    }
  }
  std::printf("called %ld times, challenged %ld times; by trick", i, challenged);
  for (long n : tried) std::printf(" %ld", n);
  std::puts("");
  return 0;
}
