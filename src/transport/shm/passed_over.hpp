// SPDX-License-Identifier: Apache-2.0
// Replies that were taken out of their rings because others behind them were wanted. They come
// before all that lies in the rings.
#pragma once

#include <cstddef>

#include "transport/shm/ring.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail::shm {

class passed_over {
 public:
  bool any() const { return first_ != nullptr; }
  /// False when so much lies here that the ring is to fill, and its writer to wait.
  bool has_room() const;

  /// Keeps a copy of a message that lies in a ring, as the last. The payload of a long one stays
  /// where it is. `elsewhere`: bytes of that which this rank keeps besides.
  void keep(const arrival& message, std::size_t elsewhere);

  // The next ones require that there are any.
  const arrival& first() const;
  bool first_is_long() const;
  void drop_first();

 private:
  struct kept;
  kept* first_ = nullptr;
  kept* last_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace sojourn::detail::shm
