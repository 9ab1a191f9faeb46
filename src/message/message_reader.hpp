// SPDX-License-Identifier: Apache-2.0
// Takes the runtime's own messages apart: nothing is read before it is known to be there, and no
// rank or address is used before it is known to be one of this job. Unlike a call, a malformed
// message of the runtime cannot be refused: what it was meant to do would be lost. So the rank
// ends, and reports the sender, kind and length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "message/runtime_message.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/ticket.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

/// Ends the rank: "a malformed message from rank 1: a piece of a stack of 12 bytes ends before …".
[[noreturn, gnu::cold]] void refuse_arrival(const arrival& a, const char* why);

/// The first bytes of a message, of a kind that was registered with at least this length
/// (on_message in inbound.hpp).
template <class Head>
[[gnu::always_inline]] inline Head head_of(const arrival& a) {
  static_assert(std::is_trivially_copyable_v<Head>);
  Head head;
  std::memcpy(static_cast<void*>(&head), a.payload, sizeof head);
  return head;
}

/// True for a ticket, a scope or a stop source of a rank of this job.
inline bool is_of_this_job(ticket_id id) { return home_of(id) < job.count; }
inline bool is_rank(std::int64_t rank) { return rank >= 0 && rank < job.count; }

/// Returns `id` if its home is a rank of this job, to which messages about it can go. Otherwise
/// refuses the message.
inline ticket_id checked_ticket(const arrival& a, ticket_id id) {
  if (!is_of_this_job(id)) [[unlikely]]
    refuse_arrival(a, "names a ticket of a rank that does not exist");
  return id;
}
inline int checked_rank(const arrival& a, std::int64_t rank) {
  if (!is_rank(rank)) [[unlikely]]
    refuse_arrival(a, "names a rank that does not exist");
  return static_cast<int>(rank);
}

/// Reads what follows the first `from` bytes of a message, from both ends.
class message_reader {
 public:
  /// Requires: the message has `from` bytes.
  explicit message_reader(const arrival& a, std::size_t from = 0)
      : message_(a), next_(a.payload + from), left_(a.bytes - from) {}

  const std::byte* next() const { return next_; }
  std::size_t left() const { return left_; }

  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(static_cast<void*>(&value), take_bytes(sizeof value), sizeof value);
    return value;
  }
  const std::byte* take_bytes(std::size_t bytes) {
    need(bytes);
    const std::byte* first = next_;
    next_ += bytes;
    left_ -= bytes;
    return first;
  }
  template <class T>
  T take_last() {
    static_assert(std::is_trivially_copyable_v<T>);
    need(sizeof(T));
    left_ -= sizeof(T);
    T value;
    std::memcpy(static_cast<void*>(&value), next_ + left_, sizeof value);
    return value;
  }

 private:
  void need(std::size_t bytes) const {
    if (bytes > left_) [[unlikely]]
      refuse_arrival(message_, "ends before what it says it holds");
  }

  const arrival& message_;
  const std::byte* next_;
  std::size_t left_;
};

}  // namespace sojourn::detail
