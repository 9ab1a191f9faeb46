// SPDX-License-Identifier: Apache-2.0
// The replicated objects that this rank has made: their newest versions, and the updates, which run
// one at a time for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fiber/waiters.hpp"
#include "object/replica_messages.hpp"
#include "object/replicas/writer.hpp"
#include "object/version_memory.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

class file_writer;
class file_reader;

struct published_object {
  replica_name name;
  const replica_type* type = nullptr;
  replicas::writer_state state;
  version_block* newest = nullptr;  ///< Null when the object has been destroyed.
  std::vector<std::byte> encoded;   ///< The newest version, as it is sent, if it is marshalled.
  bool is_updated = false;          ///< An update is in progress.
  waiters turn{waits_at::replicated};
  std::size_t users = 0;  ///< Fibers that update it, or wait for their turn.

  const void* bytes() const {
    return type->is_plain ? newest->object : static_cast<const void*>(encoded.data());
  }
  std::size_t byte_count() const { return type->is_plain ? type->bytes : encoded.size(); }
};

class replica_writers {
 public:
  explicit replica_writers(version_memory& memory) : memory_(memory) {}

  replica_name make(const replica_type& type, void (*init)(void* memory, void* context),
                    void* context);
  /// The object of this name. Errors: replicated_destroyed.
  published_object& at(const replica_name& name);
  const published_object* find(const replica_name& name) const;

  // On fibers, which suspend.
  /// Takes the turn to update the object. Errors: replicated_destroyed.
  published_object& begin_update(const replica_name& name);
  void end_turn(published_object& of);
  void end_use(published_object& of);
  replicas::version publish(published_object& of, version_block*& next);
  /// Suspends until no subscriber is more than `behind` versions behind `number`.
  void wait_for_subscribers(published_object& of, replicas::version number,
                            replicas::version behind);
  void end(const replica_name& name);

  void arrive(const arrival& a, const replicas_message& m);
  void note_end_of(int rank);
  template <class Visit>
  void each_block(Visit visit) const {
    for (const auto& [at, of] : objects_) {
      if (of->newest != nullptr) visit(of->newest);
    }
  }

  void save(file_writer& to) const;
  void load(file_reader& from);

 private:
  class services;
  void enter(published_object& of);

  version_memory& memory_;
  std::unordered_map<std::uint64_t, std::unique_ptr<published_object>> objects_;  ///< By name.at.
  std::unordered_map<std::uint64_t, ticket_id> waiting_;  ///< Updates that wait for subscribers.
  std::uint64_t calls_ = 0;
  std::uint64_t made_ = 0;
  std::vector<std::uint64_t> free_slots_;
  std::uint64_t next_slot_ = 1;  ///< No object has the first: names that are none say it.
};

}  // namespace sojourn::detail
