// SPDX-License-Identifier: Apache-2.0
//
// A plain socket's cost between two hosts: one TCP connection without delay (TCP_NODELAY), on which
// both sides ask again and again until something is there.
//
//   ping    round trip of `bytes` bytes each way
//   there   round trip of `bytes` bytes and an answer of one
//   stream  one message of `bytes` bytes, one way, of many, each written as it is; at the end one
//   byte
//           back
//   port    no measurement: where the first side listens
//
// The first side takes commands, and measures when its partner has come:
//   peer_tcp --commands … --answers … --cpus 0,1
//   peer_tcp --partner HOST:PORT --cpus 0,1
// The partner is told each operation over the connection. All payloads are checked.

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "common/command_channel.hpp"
#include "common/payload.hpp"

namespace {

int connection = -1;
bool is_first = true;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

void send_all(const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = send(connection, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) fail("peer_tcp: send");
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void receive_all(void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = recv(connection, at, bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) fail("peer_tcp: recv");
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void check(bool is_right) {
  if (is_right) return;
  std::fprintf(stderr, "peer_tcp: a message arrived changed\n");
  std::exit(2);
}

std::vector<double> round_trips(const bench::batch_plan& plan, std::size_t back) {
  const std::size_t mine = is_first ? plan.bytes : back;
  const std::size_t theirs = is_first ? back : plan.bytes;
  std::vector<char> out = bench::payload_of(mine, is_first ? 0 : 1);
  std::vector<char> in(theirs);
  std::uint64_t number = 0;
  auto found = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++number) {
      bench::number_payload(out, number);
      if (is_first) send_all(out.data(), mine);
      receive_all(in.data(), theirs);
      if (!is_first) send_all(out.data(), mine);
      check(bench::has_number(in, number));
    }
  });
  check(bench::is_payload_of(in, is_first ? 1 : 0));
  return found;
}

std::vector<double> stream(const bench::batch_plan& plan) {
  std::vector<char> buffer =
      is_first ? bench::payload_of(plan.bytes, 0) : std::vector<char>(plan.bytes);
  std::uint64_t number = 0;
  auto found = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++number) {
      if (is_first) {
        bench::number_payload(buffer, number);
        send_all(buffer.data(), buffer.size());
      } else {
        receive_all(buffer.data(), buffer.size());
        check(bench::has_number(buffer, number));
      }
    }
    char all_came = 0;
    is_first ? receive_all(&all_came, 1) : send_all(&all_came, 1);
  });
  check(bench::is_payload_of(buffer, 0));
  return found;
}

std::vector<double> measure(char what, const bench::batch_plan& plan) {
  if (what == 'p') return round_trips(plan, plan.bytes);
  if (what == 't') return round_trips(plan, 1);
  return stream(plan);
}

struct order {
  bench::batch_plan plan;
  char what;
};

void take_over(int socket) {
  const int on = 1;
  if (socket < 0 || setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
    fail("peer_tcp: socket");
  connection = socket;
}

int lead(const bench::process_options& options) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  if (bind(listening, reinterpret_cast<sockaddr*>(&any), size) != 0 || listen(listening, 1) != 0 ||
      getsockname(listening, reinterpret_cast<sockaddr*>(&any), &size) != 0)
    fail("peer_tcp: listen");
  bench::command_channel channel(options, 0);
  while (const auto next = channel.next()) {
    if (next->operation == "port") {
      channel.answer({static_cast<double>(ntohs(any.sin_port))});
      continue;
    }
    if (connection < 0) take_over(accept(listening, nullptr, nullptr));
    const order told{next->plan, next->operation.front()};
    send_all(&told, sizeof told);
    channel.answer(measure(told.what, told.plan));
  }
  return 0;
}

int follow(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(where.substr(0, colon).c_str(), where.c_str() + colon + 1, &wanted, &found) != 0)
    fail("peer_tcp: getaddrinfo");
  const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(s, found->ai_addr, found->ai_addrlen) != 0) fail("peer_tcp: connect");
  freeaddrinfo(found);
  take_over(s);
  // Between two orders it sleeps.
  for (order next; recv(connection, &next, sizeof next, MSG_WAITALL) == sizeof next;)
    measure(next.what, next.plan);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string partner;
  if (argc > 2 && std::string_view(argv[1]) == "--partner") {
    partner = argv[2];
    argv += 2;
    argc -= 2;
  }
  const bench::process_options options = bench::parse_options(argc, argv, "ping");
  is_first = partner.empty();
  if (options.cpus.size() < 2 || !bench::pin_to_cpu(options.cpus[is_first ? 0 : 1]))
    fail("peer_tcp: cannot pin to the core given with --cpus");
  return is_first ? lead(options) : follow(partner);
}
