// SPDX-License-Identifier: Apache-2.0
// The replicated objects of other ranks that this rank reads: their versions that are here, and the
// fibers that wait for one.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "object/replica_messages.hpp"
#include "object/replicas/reader.hpp"
#include "object/version_memory.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

class replica_readers {
 public:
  explicit replica_readers(version_memory& memory) : memory_(memory) {}

  // On fibers, which suspend. Errors: rank_lost, replicated_destroyed.
  void* find(const replica_name& name, const replica_type& type);
  void refresh(const replica_name& name, const replica_type& type);
  void see(const replica_name& name, const replica_type& type, replicas::version number);

  void drop(const replica_name& name);
  replicas::version version_here(const replica_name& name) const;

  void arrive(const arrival& a, const replicas_message& m);
  void note_end_of(int rank);
  /// Calls visit(block) for each version that is read here.
  template <class Visit>
  void each_block(Visit visit) const {
    for (const auto& [key, o] : objects_) {
      if (o.block != nullptr) visit(o.block);
    }
  }

 private:
  struct object {
    replica_name name;
    const replica_type* type;
    replicas::reader_state state;
    version_block* block = nullptr;  ///< Of the version state.here.
  };
  /// Not in the frame of its fiber, which may not be in its place while the fiber waits.
  struct waiting {
    ticket_id ticket = 0;
    int told = -1;  ///< Not negative: a woken.
  };
  class services;

  object& at(const replica_name& name, const replica_type& type);
  object* find_object(const replica_name& name);
  /// Forgets an object that has been destroyed, when nothing of it is left here.
  void tidy(object& o);
  template <class Ask>
  bool ask(const replica_name& name, const replica_type& type, Ask how);
  replicas::woken wait(std::uint64_t call);
  version_block* read_arriving(const replica_type& type, const arrival& a, std::size_t from);

  version_memory& memory_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, object> objects_;
  std::unordered_map<std::uint64_t, waiting> waiting_;
  std::uint64_t calls_ = 0;
  replicas::subscription latest_forgotten_ = 0;  ///< Of objects that were used and forgotten.
  version_block* arriving_ = nullptr;  ///< The version that came with the message looked at.
};

}  // namespace sojourn::detail
