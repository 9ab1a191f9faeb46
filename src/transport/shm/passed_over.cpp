// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/passed_over.hpp"

#include <cstring>

#include "memory/runtime_resource.hpp"

namespace sojourn::detail::shm {

/// The message's header lies in front of its payload, as in the ring.
struct alignas(line) passed_over::kept {
  kept* next;
  arrival message;
  bool is_long;
  std::size_t elsewhere;  ///< Bytes of its payload that this rank keeps besides.
  message_header* header() { return header_at(reinterpret_cast<std::byte*>(this + 1)); }
  std::size_t bytes() { return sizeof(kept) + header()->length(); }
  std::size_t bytes_in_all() { return bytes() + elsewhere; }
};

bool passed_over::has_room() const {
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  return bytes_ <= most_bytes;
}

void passed_over::keep(const arrival& message, std::size_t elsewhere) {
  const auto* header = static_cast<const message_header*>(message.message);
  const std::size_t length = header->length();
  void* room = runtime_resource()->allocate(sizeof(kept) + length, alignof(kept));
  auto* copy =
      ::new (room) kept{nullptr, message, (header->flags & transport::flag_long) != 0, elsewhere};
  std::memcpy(static_cast<void*>(copy->header()), header, length);
  copy->message.message = copy->header();
  if (!copy->is_long) copy->message.payload = payload_of(copy->header(), length);
  (first_ == nullptr ? first_ : last_->next) = copy;
  last_ = copy;
  bytes_ += copy->bytes_in_all();
  // poll() and consume() look at such messages where they look at others that are rare.
  copy->header()->flags |= transport::flag_long;
}

const arrival& passed_over::first() const { return first_->message; }
bool passed_over::first_is_long() const { return first_->is_long; }

void passed_over::drop_first() {
  kept* const gone = first_;
  first_ = gone->next;
  bytes_ -= gone->bytes_in_all();
  runtime_resource()->deallocate(gone, gone->bytes(), alignof(kept));
}

}  // namespace sojourn::detail::shm
