// SPDX-License-Identifier: Apache-2.0
// The memory of the versions of replicated objects on this rank. Nobody counts who reads a version:
// one that is no longer read by new calls is freed when no frame of a reader has an address in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "object/replicas/message.hpp"
#include "sojourn/detail/replicas.hpp"

namespace sojourn::detail {

struct piece;

/// Lies before the object.
struct version_block {
  const replica_type* type;
  replicas::version number;
  void* object;

  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(object); }
};

class version_memory {
 public:
  /// Room for an object, which is not made yet.
  version_block* take(const replica_type& type);
  /// Gives back room in which no object is.
  void give_back(version_block* block);
  /// Destroys the object at once: no call has had its address.
  void discard(version_block* block);

  /// New calls read `block` no longer. It is freed when none of the old ones does; that is found
  /// out when enough such blocks have come together. `frames_are_known`: whatever code of the
  /// program is in progress is in fibers' frames.
  void retire(version_block* block, bool frames_are_known);
  /// True when a suspended piece has an address in one of these blocks.
  static bool is_used_by(const piece* p, const std::vector<version_block*>& sorted);
  const std::vector<version_block*>& retired() const { return retired_; }

 private:
  void free_unused();

  std::vector<version_block*> retired_;
  std::size_t retired_bytes_ = 0;
  // When so much has been retired, it is looked at what is in use.
  std::size_t look_at_blocks_ = least_blocks;
  std::size_t look_at_bytes_ = least_bytes;
  static constexpr std::size_t least_blocks = 8;
  static constexpr std::size_t least_bytes = 1u << 20;
};

}  // namespace sojourn::detail
