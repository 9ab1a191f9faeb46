// SPDX-License-Identifier: Apache-2.0
// Two ranks of one process over one segment, as two threads, for the thread sanitizer: what they
// share is ordered by what the rings and the words to sleep on say. Messages of all lengths go both
// ways, and both fall asleep.
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "memory/address_map.hpp"
#include "sojourn/detail/counts.hpp"
#include "transport/shm_transport.hpp"

// Each rank counts for itself; here both are one process, and count in one place.
// Told by its address: to suppress it by name, the sanitizer would need a program that finds names.
extern "C" void AnnotateBenignRaceSized(const char* file, int line, const volatile void* at,
                                        std::size_t bytes, const char* why);

// The transport alone: what it takes of the memory floor.
void* sojourn::detail::runtime_memory(std::size_t bytes) {
  constexpr std::size_t line = 64;
  void* memory = std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (memory == nullptr) throw std::bad_alloc();
  return std::memset(memory, 0, bytes);
}

namespace {

using namespace sojourn::detail;

std::uint64_t requests = 4000;
constexpr std::uint64_t unanswered_max = 64;

std::uint64_t word_of(std::uint64_t ticket, std::size_t i) { return ticket * 37 + i * 11 + 1; }

bool send(transport& from, int to, message_class kind, std::uint64_t ticket, std::size_t words) {
  std::byte* room = from.reserve(to, kind, words * 8);
  if (room == nullptr) return false;
  auto* payload = reinterpret_cast<std::uint64_t*>(room);
  for (std::size_t i = 0; i < words; ++i) {
    // The reader may look at any line for a message's number, while a payload is written there;
    // what it finds then it does not use (ring.hpp). So these stores are atomic here: they race by
    // design, and no other access does.
    std::atomic_ref(payload[i]).store(word_of(ticket, i), std::memory_order_relaxed);
  }
  from.commit(to, kind, 1, 0, ticket);
  return true;
}

struct end {
  transport& at;
  int other;
  std::uint64_t answered = 0;
  std::uint64_t wrong = 0;
  bool over = false;
};

bool take(arrival& a, void* context) {
  auto& e = *static_cast<end*>(context);
  const std::uint64_t ticket = a.ticket;
  const std::size_t words = a.bytes / 8;
  std::vector<std::uint64_t> payload(words);
  if (words != 0) std::memcpy(payload.data(), a.payload, words * 8);
  for (std::size_t i = 0; i < words; ++i) e.wrong += payload[i] != word_of(ticket, i);
  const message_class kind = a.kind;
  e.at.consume(a);
  if (kind == message_class::reply) {
    e.wrong += ticket != e.answered++;
    return false;
  }
  if (ticket == requests) {
    e.over = true;
  } else {
    // Answers are taken by a rank that waits for room, too: there is always room for them in the
    // end.
    while (!send(e.at, e.other, message_class::reply, ticket, words)) std::this_thread::yield();
  }
  return false;
}

bool nothing_else() { return false; }

void asks(transport& at) {
  end me{at, 1};
  std::minstd_rand random(1);
  std::uint64_t sent = 0;
  while (me.answered < requests) {
    while (sent < requests && sent - me.answered < unanswered_max) {
      const std::size_t words = random() % 200 == 0 ? random() % 20'000 : random() % 24;
      if (!send(at, 1, message_class::request, sent, words)) break;
      ++sent;
    }
    at.wait(nothing_else);
    at.poll(take, &me, 16);
  }
  while (!send(at, 1, message_class::request, requests, 0)) std::this_thread::yield();
  if (me.wrong != 0) {
    std::fprintf(stderr, "%llu words or answers are wrong\n",
                 static_cast<unsigned long long>(me.wrong));
    std::_Exit(1);
  }
}

void answers(transport& at) {
  end me{at, 0};
  while (!me.over) {
    at.wait(nothing_else);
    at.poll(take, &me, 16);
  }
  if (me.wrong != 0) std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  AnnotateBenignRaceSized(__FILE__, __LINE__, &sojourn::detail::counts,
                          sizeof sojourn::detail::counts, "one for both ranks");
  if (argc > 1) requests = std::strtoull(argv[1], nullptr, 10);
  const shm::layout layout(2, 2);
  void* memory = mmap(nullptr, layout.total_bytes(), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 2;
  auto* first = static_cast<std::byte*>(memory);
  for (std::uint32_t last_number : {0u, ~0u - 100}) {
    std::memset(memory, 0, layout.total_bytes());
    shm::shm_transport zero(first, 0, 2, 1, last_number);
    shm::shm_transport one(first, 1, 2, 1, last_number);
    zero.begin();
    one.begin();
    std::thread other([&] { answers(one); });
    asks(zero);
    other.join();
  }
  std::puts("no wrong word");
  return 0;
}
