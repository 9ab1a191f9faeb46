// SPDX-License-Identifier: Apache-2.0
// Messages that no program sends: each is refused whole, both ends hear of it, and the ranks go on.
#include "sojourn/detail/marshalled.hpp"

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "sojourn/detail/wire.hpp"

using namespace sojourn;
using namespace sojourn::detail;

namespace {

int next_rank() { return (rank_me() + 1) % rank_count(); }

long runs = 0;
long take(std::map<std::string, std::vector<std::string>> values, std::vector<double> numbers) {
  ++runs;
  return static_cast<long>(values.size() + numbers.size());
}
using call = request_of<function_target<decltype(&take), long>,
                        std::map<std::string, std::vector<std::string>>, std::vector<double>>;

struct plain {
  long a[4];
};
long take_plain(plain p) {
  ++runs;
  return p.a[3];
}
using plain_call = request_of<function_target<decltype(&take_plain), long>, plain>;

struct counter {
  long value = 0;
  long add(long n) { return value += n; }
  long append(std::string s) { return value += static_cast<long>(s.size()); }
};

/// The bytes of a message as they would be sent.
std::vector<std::byte> good_message() {
  std::map<std::string, std::vector<std::string>> values{{"a", {"b", "c"}}, {"d", {}}};
  std::vector<double> numbers{1, 2, 3};
  measured size = measure(values, numbers);
  std::vector<std::byte> bytes(call::head_room + header_room + size.whole);
  travelling_callable<decltype(&take)> fn(&take);
  std::memcpy(bytes.data(), &fn, sizeof fn);
  CHECK(write_whole(bytes.data() + call::head_room, size.whole, values, numbers) == nullptr);
  return bytes;
}

future<long> send(int to, std::uint16_t handler, const std::vector<std::byte>& bytes) {
  outgoing out = begin_request(to, bytes.size(), true);
  if (!bytes.empty()) std::memcpy(out.payload, bytes.data(), bytes.size());
  commit_request(to, handler, out.ticket);
  return detail::future_access::of_ticket<future<long>>(out.ticket);
}

std::uint64_t refused_by(int rank) {
  return rpc(rank, [] { return counters_now().messages_refused; }).get();
}

void a_truncated_message_is_refused_whole() {
  int to = next_rank();
  auto good = good_message();
  CHECK_EQUAL(send(to, call::handler, good).get(), 5L);
  // Rings round lengths up; a cut by this much is one for certain.
  for (std::size_t cut = 0; cut + 64 <= good.size(); cut += 24) {
    std::vector<std::byte> part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut));
    std::uint64_t before = refused_by(to);
    CHECK_THROWS(malformed_message, send(to, call::handler, part).get());
    CHECK(refused_by(to) > before);
  }
  CHECK_EQUAL(send(to, call::handler, good).get(), 5L);
}

void a_short_message_of_bytes_is_refused() {
  int to = next_rank();
  plain_call::payload_type payload{travelling_callable<decltype(&take_plain)>(&take_plain),
                                   {plain{{1, 2, 3, 4}}}};
  std::vector<std::byte> bytes(sizeof payload);
  std::memcpy(bytes.data(), static_cast<const void*>(&payload), sizeof payload);
  CHECK_EQUAL(send(to, plain_call::handler, bytes).get(), 4L);
  bytes.resize(8);
  // What a ring adds at the end of a message is not enough for these.
  CHECK_THROWS(malformed_message, send(to, plain_call::handler, bytes).get());
}

void mutated_messages_are_refused_or_are_values() {
  int to = next_rank();
  auto good = good_message();
  std::mt19937 r(static_cast<unsigned>(rank_me()) + 1);
  long refused = 0;
  for (int i = 0; i < 1000; ++i) {
    auto bytes = good;
    // Not the function's index: which of the program's functions runs is the sender's to say.
    for (unsigned n = 1 + r() % 3; n > 0; --n) {
      std::size_t at = call::head_room + r() % (bytes.size() - call::head_room);
      bytes[at] = static_cast<std::byte>(r() % 3 == 0 ? 0xff : r());
    }
    try {
      (void)send(to, call::handler, bytes).get();
    } catch (const error&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
  CHECK_EQUAL(send(to, call::handler, good).get(), 5L);
}

void an_object_outside_of_the_heap_is_refused() {
  int to = next_rank();
  using add = detail::method<&counter::add>::request<counter, false>;
  add::payload_type payload{{&runs}, {1L}};
  std::vector<std::byte> bytes(sizeof payload);
  std::memcpy(bytes.data(), static_cast<const void*>(&payload), sizeof payload);
  CHECK_THROWS(malformed_message, send(to, add::handler, bytes).get());

  using append = detail::method<&counter::append>::request<counter, false>;
  std::string text = "text";
  std::vector<std::byte> message(append::head_room + header_room + measure(text).whole);
  append::head head{&runs};
  std::memcpy(message.data(), &head, sizeof head);
  CHECK(write_whole(message.data() + append::head_room, measure(text).whole, text) == nullptr);
  CHECK_THROWS(malformed_message, send(to, append::handler, message).get());
}

void blocks_that_nobody_keeps_are_refused() {
  int to = next_rank();
  for (std::uint64_t address : {std::uint64_t{0x1000}, reinterpret_cast<std::uint64_t>(&runs)}) {
    for (std::uint64_t skeleton : {std::uint64_t{0}, address}) {
      std::vector<std::byte> bytes(call::head_room + kept_header_room + 32);
      travelling_callable<decltype(&take)> fn(&take);
      std::memcpy(bytes.data(), &fn, sizeof fn);
      marshalled_header header{marshalled_header::form::kept, rank_me(), 24};
      kept_place place{12345, skeleton};
      // No words, and ten million numbers.
      std::uint64_t values[3] = {0, 10'000'000, 0x1000};
      std::byte* at = bytes.data() + call::head_room;
      std::memcpy(at, &header, sizeof header);
      std::memcpy(at + header_room, &place, sizeof place);
      std::memcpy(at + kept_header_room, values, sizeof values);
      CHECK_THROWS(malformed_message, send(to, call::handler, bytes).get());
    }
  }
}

/// Values that tell when this rank keeps them no longer.
class noted_end final : public kept_values {
 public:
  explicit noted_end(bool& ended) : ended_(ended) {}
  ~noted_end() override { ended_ = true; }

 private:
  bool& ended_;
};

void a_refused_call_does_not_need_its_values_any_more() {
  int to = next_rank();
  using append = detail::method<&counter::append>::request<counter, false>;
  bool ended = false;
  std::vector<std::byte> message(append::head_room + kept_header_room + 16);
  append::head head{&runs};
  marshalled_header header{marshalled_header::form::kept, rank_me(), 16};
  kept_place place{keep_for_reader(std::make_unique<noted_end>(ended)), 0};
  std::memcpy(message.data(), &head, sizeof head);
  std::memcpy(message.data() + append::head_room, &header, sizeof header);
  std::memcpy(message.data() + append::head_room + header_room, &place, sizeof place);
  CHECK_THROWS(malformed_message, send(to, append::handler, message).get());
  rpc(to, [] {}).get();  // its answer comes behind the word that they are not needed
  CHECK(ended);
}

void a_refused_one_way_call_is_told_to_its_finish() {
  auto bytes = good_message();
  bytes[call::head_room + 4 * 5] = std::byte{0xff};
  CHECK_THROWS(malformed_message, finish([&] {
                 outgoing out = begin_request(next_rank(), bytes.size(), false);
                 std::memcpy(out.payload, bytes.data(), bytes.size());
                 commit_request(next_rank(), call::handler, 0);
               }));
}

void a_refusal_says_who_refuses_what() {
  auto bytes = good_message();
  bytes[call::head_room] = std::byte{0};
  try {
    send(next_rank(), call::handler, bytes).get();
    CHECK(false);
  } catch (const malformed_message& e) {
    std::string expected = "rank " + std::to_string(next_rank()) + " refuses a call from rank " +
                           std::to_string(rank_me());
    CHECK(std::string(e.what()).find(expected) != std::string::npos);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    using check::claim;
    claim("a truncated message is refused whole", a_truncated_message_is_refused_whole);
    claim("a short message of bytes is refused", a_short_message_of_bytes_is_refused);
    claim("mutated messages are refused or are values", mutated_messages_are_refused_or_are_values);
    claim("an object outside of the heap is refused", an_object_outside_of_the_heap_is_refused);
    claim("blocks that nobody keeps are refused", blocks_that_nobody_keeps_are_refused);
    claim("a refused call does not need its values any more",
          a_refused_call_does_not_need_its_values_any_more);
    claim("a refused one-way call is told to its finish",
          a_refused_one_way_call_is_told_to_its_finish);
    claim("a refusal says who refuses what", a_refusal_says_who_refuses_what);
    return check::verdict();
  });
}
