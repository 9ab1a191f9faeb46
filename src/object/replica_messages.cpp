// SPDX-License-Identifier: Apache-2.0
#include "object/replica_messages.hpp"

#include <cstring>
#include <memory_resource>
#include <vector>

#include "memory/runtime_resource.hpp"
#include "message/losses.hpp"
#include "message/outbound.hpp"

namespace sojourn::detail {

namespace {

void commit(int to, std::size_t bytes) {
  commit_message(to, message_class::request, runtime_message::replicas, 0, 0);
  count_message(runtime_message::replicas, bytes);
}

/// A request that waits for room.
struct waiting_request : in_runtime_memory {
  int to;
  std::pmr::vector<std::byte> whole{runtime_resource()};

  static void go(void* context) {
    auto* const w = static_cast<waiting_request*>(context);
    std::byte* const room = reserve_in_turn(w->to, w->whole.size());
    if (room == nullptr) return when_room(w->to, w->whole.size(), go, w, nullptr);
    std::memcpy(room, w->whole.data(), w->whole.size());
    commit(w->to, w->whole.size());
    delete w;
  }
};

void write(std::byte* room, const replicas_message& head, const void* bytes, std::size_t size) {
  std::memcpy(room, &head, sizeof head);
  if (size != 0) std::memcpy(room + sizeof head, bytes, size);
}

}  // namespace

void send_about_replica(int to, const replica_name& of, const replicas::message& m,
                        const void* bytes, std::size_t size) {
  if (is_lost(to)) return;
  const replicas_message head{.of = of,
                              .number = m.number,
                              .call = m.call,
                              .subscription = m.of,
                              .what = m.what,
                              .how = m.how,
                              .brings = m.brings,
                              .unused = 0};
  const std::size_t whole = sizeof head + size;
  if (replicas::is_reply(m.what)) {
    write(reserve_reply(to, runtime_message::replicas, whole), head, bytes, size);
    return commit_reply(to, runtime_message::replicas, 0, 0);
  }
  if (std::byte* const room = try_reserve_request(to, whole)) {
    write(room, head, bytes, size);
    return commit(to, whole);
  }
  auto* const waits = new waiting_request;
  waits->to = to;
  waits->whole.resize(whole);
  write(waits->whole.data(), head, bytes, size);
  when_room(to, whole, waiting_request::go, waits, nullptr);
}

}  // namespace sojourn::detail
