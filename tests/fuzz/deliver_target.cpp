// SPDX-License-Identifier: Apache-2.0
#include "deliver_target.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "fiber/scheduler.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "message/dispatcher.hpp"
#include "message/dispatcher_state.hpp"
#include "migrate/piece_message.hpp"
#include "rpc/scopes.hpp"
#include "shared/pages/page_message.hpp"
#include "sojourn/detail/running.hpp"

namespace fuzz {

namespace {

using namespace sojourn;
using namespace sojourn::detail;

using kind = runtime_message;
constexpr auto first_request = static_cast<std::uint16_t>(kind::count_);

struct {
  ticket_id ticket;
  ticket_id thread;
  ticket_id scope;
  stop_id stop;
  long* object;
} named;

/// Of whatever bytes came, so that it may overflow.
long sum(long a, long b) {
  return static_cast<long>(static_cast<unsigned long>(a) + static_cast<unsigned long>(b));
}
const auto add = [](long a, long b) { return sum(a, b); };
using plain_call = request_of<function_target<decltype(add), long>, long, long>;
[[maybe_unused]] const auto join = [](std::string text, std::vector<int> numbers) {
  return static_cast<long>(text.size() + numbers.size());
};
using long_call = request_of<function_target<decltype(join), long>, std::string, std::vector<int>>;
const auto body = [](long) {};
using start = request_of<thread_target<decltype(body)>, long>;
struct counter {
  long value = 0;
  long add(long n) { return value += n; }
};
using method_call = detail::method<&counter::add>::request<counter, false>;

// Numbers that programs stumble over, and addresses of each part of the region and of none.
std::uint64_t odd_number(std::mt19937_64& random) {
  const std::uint64_t all[] = {0,
                               1,
                               2,
                               7,
                               8,
                               0x7f,
                               0xff,
                               0xffff,
                               0x10000,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               ~0ull,
                               ~0ull / 2,
                               1ull << 48,
                               1023ull << 48,
                               0xffffull << 48,
                               0x1000,
                               addresses.base,
                               addresses.stacks,
                               addresses.stacks_end() - 8,
                               addresses.heap,
                               addresses.heap + addresses.heap_bytes() - 8,
                               addresses.arenas,
                               addresses.arenas_end() - 4096,
                               slots.high(slots.main_slot()) - 256,
                               named.ticket,
                               named.thread,
                               named.scope,
                               named.stop,
                               reinterpret_cast<std::uint64_t>(named.object)};
  return all[random() % std::size(all)];
}

template <class T>
void put(message& m, const T& value) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
  m.insert(m.end(), first, first + sizeof value);
}

message begun(std::uint16_t handler, ticket_id ticket, std::uint16_t flags = 0) {
  message m;
  put(m, handler);
  put(m, flags);
  put(m, ticket);
  return m;
}
message of_words(kind k, ticket_id ticket, std::initializer_list<std::uint64_t> words,
                 std::uint16_t flags = 0) {
  message m = begun(static_cast<std::uint16_t>(k), ticket, flags);
  for (std::uint64_t word : words) put(m, word);
  return m;
}

std::uint16_t handler_in(const message& m) {
  std::uint16_t handler;
  std::memcpy(&handler, m.data(), sizeof handler);
  return handler;
}
std::uint16_t flags_in(const message& m) {
  std::uint16_t flags;
  std::memcpy(&flags, m.data() + 2, sizeof flags);
  return flags;
}
ticket_id ticket_in(const message& m) {
  ticket_id ticket;
  std::memcpy(&ticket, m.data() + 4, sizeof ticket);
  return ticket;
}

/// A piece whose frames would be run, or read: its address is made none of a stack.
void spoil_piece(message& m) {
  const std::size_t first = head_bytes;
  std::uint64_t sp;
  if (m.size() < first + sizeof(piece_header)) return;
  std::memcpy(&sp, m.data() + first, sizeof sp);
  if (!addresses.in_stacks(sp)) return;
  const std::uint32_t slot = slots.index_of(sp);
  // In a guard page, or too long: that is to be refused, too.
  if (sp - slots.low(slot) < stack_slots::guard_bytes) return;
  if (handler_in(m) == static_cast<std::uint16_t>(kind::piece)) {
    if (m.size() > first + sizeof(piece_header) + 256 + (slots.high(slot) - sp)) return;
  }
  sp = addresses.heap;
  std::memcpy(m.data() + first, &sp, sizeof sp);
}

message some_call(std::mt19937_64& random) {
  switch (random() % 7) {
    case 0: {
      message m = begun(plain_call::handler, named.ticket);
      put(m, plain_call::payload_type{travelling_callable<decltype(add)>(add), {1L, 2L}});
      return m;
    }
    case 1: {
      std::string text = "text";
      std::vector<int> numbers{1, 2, 3};
      const measured size = measure(text, numbers);
      message m = begun(long_call::handler, named.ticket);
      alignas(16) std::byte room[512];
      if (write_whole(room, size.whole, text, numbers) != nullptr) std::abort();
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(room);
      m.resize(m.size() + long_call::head_room);
      m.insert(m.end(), bytes, bytes + header_room + size.whole);
      return m;
    }
    case 2: {
      message m = begun(start::handler, thread_open(0));
      put(m, start::payload_type{{{}, travelling_callable<decltype(body)>(body)}, {1L}});
      return m;
    }
    case 3: {
      message m = begun(method_call::handler, named.ticket);
      put(m, method_call::payload_type{{named.object}, {1L}});
      return m;
    }
    case 4: {
      message m = begun(handler_number(fixed_handler::thread_home), named.ticket);
      put(m, named.thread);
      put(m, std::uint64_t{random() % 5 + 1});
      return m;
    }
    case 5: {
      message m = begun(handler_number(random() % 2 == 0 ? fixed_handler::named_function
                                                         : fixed_handler::named_method),
                        named.ticket);
      for (std::uint64_t word : {12345ull, 16ull << 32, 0x6261ull, 0x64ull}) put(m, word);
      return m;
    }
    default: {
      // The first handler that the program itself registers: of some unit of it, maybe of bundles.
      message m = begun(
          static_cast<std::uint16_t>(first_request + static_cast<unsigned>(fixed_handler::count_)),
          named.ticket);
      for (std::uint64_t word : {1ull << 32, 1ull, 2ull}) put(m, word);
      return m;
    }
  }
}

piece_header some_header(std::mt19937_64& random, std::uint64_t sp) {
  const auto bytes = static_cast<std::uint8_t>(random() % 16);
  return {sp, nullptr, nullptr, {}, {bytes, bytes == 4}, random() % 2 != 0, odd_number(random)};
}

message some_runtime_message(std::mt19937_64& random) {
  const std::uint64_t object = reinterpret_cast<std::uint64_t>(named.object);
  const std::uint64_t sp = odd_number(random);
  switch (const auto k = static_cast<kind>(random() % static_cast<unsigned>(kind::count_))) {
    case kind::result:
      return of_words(k, named.ticket, {3}, static_cast<std::uint16_t>(random() % 2 * 8));
    case kind::piece: {
      message m = of_words(k, named.ticket, {});
      put(m, some_header(random, sp));
      m.resize(m.size() + 64 * (random() % 4 == 0 ? 8000 : 4));
      return m;
    }
    case kind::piece_to_read: {
      message m = of_words(k, named.ticket, {});
      put(m, some_header(random, sp));
      // Without a thread's heap, or with one of any number of parts.
      const std::uint64_t arena = random() % 2 * object;
      const std::uint64_t parts = arena == 0 ? 0 : odd_number(random);
      for (std::uint64_t word :
           std::initializer_list<std::uint64_t>{256, 0, 0, named.ticket, arena, 0, parts})
        put(m, word);
      return m;
    }
    case kind::piece_part:
      return of_words(k, 0, {named.ticket, object, 1, 2, 3});
    case kind::extent_returns:
      return of_words(k, 0, {addresses.arenas, 1 << 16});
    case kind::forward_result:
      return of_words(k, ticket_open(), {named.ticket});
    case kind::drop_ticket:
      return of_words(k, ticket_open(), {});
    case kind::collective:
      return of_words(k, 1000, {1}, static_cast<std::uint16_t>(random() % 8));
    case kind::scope_returns:
      return of_words(k, named.scope, {1});
    case kind::scope_wants:
      return of_words(k, named.scope, {named.ticket});
    case kind::scope_failed:
      return of_words(k, named.scope, {random() % 40, 0, 0, 0x2020'2020});
    case kind::bulk_put:
      return of_words(k, named.ticket, {object, 8, 5});
    case kind::bulk_get:
      return of_words(k, named.ticket, {object, 8});
    case kind::stop_told:
      return of_words(k, named.stop, {3});
    case kind::thread_ask:
      return of_words(k, 0, {named.thread, named.ticket, 0});
    case kind::thread_moved:
      return of_words(k, named.thread, {std::uint64_t{1} << 32});
    case kind::thread_query:
      return of_words(k, named.thread, {named.thread, 0});
    case kind::kept_read:
      return of_words(k, named.ticket, {1, object, 8});
    case kind::entry_told:
      return of_words(k, 0, {12345, 0});
    case kind::threads_handed: {
      const start::payload_type payload{{{}, travelling_callable<decltype(body)>(body)}, {1L}};
      // As handed_thread: the thread, a scope with its weight, bytes and moves, source, handler and
      // whether there is a scope, and what load balance knows of it.
      message m = of_words(k, 0, {thread_open(0), 0, 0, sizeof payload});
      put(m, std::uint32_t{0});
      put(m, start::handler);
      put(m, std::uint16_t{0});
      m.resize(head_bytes + 80);
      put(m, payload);
      m.resize(head_bytes + (m.size() - head_bytes + 15) / 16 * 16);
      return m;
    }
    case kind::check_copy:
      return of_words(k, 0, {object, 1, 0, 8, 0, 0, 0, 0, 0});
    case kind::shared_memory: {
      message m = of_words(k, 0, {});
      const auto what = random() % static_cast<unsigned>(pages::page_message::count_);
      put(m, pages::message_head{.what = static_cast<pages::page_message>(what),
                                 .flag = static_cast<std::uint8_t>(random() % 20),
                                 .number = static_cast<std::uint32_t>(random() % 4),
                                 .first = static_cast<std::uint32_t>(random() % 10)});
      // Clocks, lists and requests of zeros, and perhaps a page; an object, and small numbers.
      if (random() % 2 == 0) put(m, random() % 2 == 0 ? addresses.shared : 0);
      if (random() % 2 == 0) put(m, random() % 4);
      m.resize(m.size() + random() % 64 + random() % 2 * pages::page_bytes);
      return m;
    }
    default:
      return of_words(k, named.stop, {1, 0});
  }
}

}  // namespace

void open_what_messages_name() {
  named.ticket = ticket_open();
  named.thread = thread_open(0);
  named.scope = finish_of(running_piece()->scope);
  named.stop = stop_open();
  named.object = &make<counter>(rank_me()).local()->value;
}

message some_message(std::mt19937_64& random) {
  return random() % 3 == 0 ? some_call(random) : some_runtime_message(random);
}

void mutate(message& m, std::mt19937_64& random) {
  for (unsigned n = 1 + random() % 4; n > 0; --n) {
    const std::size_t payload = m.size() - head_bytes;
    switch (random() % 6) {
      case 0:  // cut off
        m.resize(head_bytes + random() % (payload + 1));
        break;
      case 1:  // longer
        m.resize(m.size() + random() % 64);
        break;
      case 2:  // flags
        m[2] = static_cast<std::uint8_t>(random() % 16);
        break;
      case 3: {  // its ticket
        const std::uint64_t word = odd_number(random);
        std::memcpy(m.data() + 4, &word, sizeof word);
        break;
      }
      case 4: {  // a byte
        if (payload == 0) break;
        m[head_bytes + random() % payload] = static_cast<std::uint8_t>(random());
        break;
      }
      default: {  // a word of four or eight bytes
        const std::uint64_t word = odd_number(random);
        const std::size_t size = random() % 2 == 0 ? 8 : 4;
        if (payload < size) break;
        std::memcpy(m.data() + head_bytes + random() % (payload / size) * size, &word, size);
      }
    }
  }
}

bool is_too_short(const message& m) {
  const std::size_t bytes = m.size() - head_bytes;
  if (handler_in(m) >= first_request) return false;
  switch (static_cast<kind>(handler_in(m))) {
    case kind::piece:
      return bytes < sizeof(piece_header);
    case kind::piece_to_read:
      return bytes < sizeof(piece_header) + 56;
    case kind::thread_ask:
    case kind::kept_read:
      return bytes < 24;
    case kind::shared_memory:
      return bytes < sizeof(pages::message_head);
    case kind::piece_part:
    case kind::extent_returns:
    case kind::bulk_put:
    case kind::bulk_get:
    case kind::thread_query:
      return bytes < 16;
    case kind::entry_told:
      return bytes < 12;
    case kind::forward_result:
    case kind::scope_returns:
    case kind::scope_wants:
    case kind::thread_moved:
      return bytes < 8;
    case kind::steal_nothing:
    case kind::load_told:
      return bytes < 4;
    case kind::stop_told:
      return bytes < 1;
    case kind::check_copy:
      return bytes < 48;
    case kind::threads_handed:
      return bytes % 16 != 0;
    default:
      return false;
  }
}

void deliver(const message& given) {
  if (given.size() < head_bytes) return;
  message m = given;
  const std::uint16_t handler = handler_in(m);
  if (handler == static_cast<std::uint16_t>(kind::piece) ||
      handler == static_cast<std::uint16_t>(kind::piece_to_read)) {
    spoil_piece(m);
  }
  // The type of what was copied is an address in the program, which only checked mode asks for.
  if (handler == static_cast<std::uint16_t>(kind::check_copy)) {
    const auto last = std::min<std::ptrdiff_t>(head_bytes + 24, std::ssize(m));
    std::fill(m.begin() + std::min<std::ptrdiff_t>(head_bytes + 16, last), m.begin() + last,
              std::uint8_t{0});
  }
  const std::size_t bytes = m.size() - head_bytes;
  if (bytes > wire().payload_max()) return;
  if (handler < first_request) {
    std::byte* room = wire().reserve(job.me, message_class::request, bytes);
    if (room == nullptr) return;
    if (bytes != 0) std::memcpy(room, m.data() + head_bytes, bytes);
    commit_message(job.me, message_class::request, static_cast<kind>(handler), flags_in(m),
                   ticket_in(m));
  } else {
    // What a rank calls on itself goes another way.
    const bool has_flags = flags_in(m) != 0;
    std::byte* room =
        has_flags ? dispatcher.own.reserve(bytes) : begin_request(job.me, bytes, false).payload;
    if (room == nullptr) return;
    if (bytes != 0) std::memcpy(room, m.data() + head_bytes, bytes);
    if (has_flags) {
      ++dispatcher.moved.sent;
      dispatcher.own.commit(handler, flags_in(m), 0);
    } else {
      commit_request(job.me, handler, ticket_in(m));
    }
  }
  for (int turn = 0; turn < 4; ++turn) yield();
}

std::string told(const message& m) {
  char text[200];
  if (m.size() < head_bytes) return "no message";
  std::snprintf(text, sizeof text,
                "handler %u (%u are the runtime's), flags 0x%x, ticket 0x%llx, "
                "%zu bytes:",
                handler_in(m), first_request, flags_in(m),
                static_cast<unsigned long long>(ticket_in(m)), m.size() - head_bytes);
  std::string all = text;
  for (std::size_t i = head_bytes; i < std::min<std::size_t>(m.size(), head_bytes + 128); ++i) {
    std::snprintf(text, sizeof text, "%s%02x", (i - head_bytes) % 8 == 0 ? " " : "", m[i]);
    all += text;
  }
  return all;
}

bool keep_shared_memory_private() {
  struct range {
    unsigned long first;
    unsigned long end;
  };
  auto in_heap = [](unsigned long address) {
    return address - sojourn::detail::addresses.heap < sojourn::detail::addresses.heap_bytes();
  };
  std::vector<range> shared;
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  for (char line[512]; std::fgets(line, sizeof line, maps) != nullptr;) {
    range r{};
    char access[5] = "";
    if (std::sscanf(line, "%lx-%lx %4s", &r.first, &r.end, access) == 3 &&
        std::strcmp(access, "rw-s") == 0 && !in_heap(r.first)) {
      shared.push_back(r);
    }
  }
  std::fclose(maps);
  for (const range& r : shared) {
    const std::size_t bytes = r.end - r.first;
    auto* at = reinterpret_cast<char*>(r.first);
    const std::vector<char> copy(at, at + bytes);
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
      return false;
    }
    std::memcpy(at, copy.data(), bytes);
  }
  return !shared.empty();
}

bool is_refusal(const std::string& text) {
  for (const char* words :
       {"a malformed message from rank", "it does not come from this program",
        "are not an extent of rank", "the table of a thread's heap",
        "which do not lie in the heap of rank", "are not where its message says", "has no object",
        "an exception left a one-way call", "an exception left a detached thread"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

int fork_as_rank() { return static_cast<int>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }

}  // namespace fuzz
