// SPDX-License-Identifier: Apache-2.0
// What the conformance tests know of each transport: how to set up a job of some ranks in one
// process. Every rank's end is an object of its own; ranks share what the job's segment holds.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "transport/shm_transport.hpp"
#include "transport/sleepers.hpp"
#include "transport/transport.hpp"

namespace conformance {

using sojourn::detail::arrival;
using sojourn::detail::message_class;
using sojourn::detail::sleepers;
using sojourn::detail::transport;
using sojourn::detail::transport_bytes;

/// Ranks over shared memory, as the launcher makes it: zeroed, and shared with forked processes.
class shm_job {
 public:
  static constexpr const char* name = "shm";
  /// Ranks may read and write each other's memory, if the system lets them.
  static constexpr bool copies_memory = true;

  explicit shm_job(int ranks, std::uint32_t last_number = 0)
      : ranks_(ranks), bytes_(transport_bytes(ranks)), last_number_(last_number) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    for (int r = 0; r < ranks; ++r) ends_.push_back(make(r));
    begin();
  }
  ~shm_job() {
    ends_.clear();
    munmap(memory_, bytes_);
  }
  shm_job(const shm_job&) = delete;

  /// Afterwards all that was sent has arrived, if it has room there.
  void settle() {}
  transport& at(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }
  /// What others than the ranks see of the sleep of this one.
  sleepers asleep(int) const { return sleepers(static_cast<std::byte*>(memory_)); }
  /// In a forked process: this rank's end is made anew, for the process that it is in.
  void attach_again(int rank) {
    ends_[static_cast<std::size_t>(rank)] = make(rank);
    begin();
  }

 private:
  std::unique_ptr<sojourn::detail::shm::shm_transport> make(int rank) {
    // Fewer cores than ranks: waiting ranks sleep early.
    return std::make_unique<sojourn::detail::shm::shm_transport>(static_cast<std::byte*>(memory_),
                                                                 rank, ranks_, 1, last_number_);
  }
  void begin() {
    for (auto& end : ends_) end->begin();
  }

  int ranks_;
  std::size_t bytes_;
  std::uint32_t last_number_;
  void* memory_;
  std::vector<std::unique_ptr<sojourn::detail::shm::shm_transport>> ends_;
};

/// The same where the numbers of messages are about to begin anew, and where the writer looks after
/// those of the lap before.
class shm_job_near_wrap : public shm_job {
 public:
  static constexpr const char* name = "shm_near_wrap";
  explicit shm_job_near_wrap(int ranks) : shm_job(ranks, ~std::uint32_t{0} - 5) {}
};
class shm_job_near_look : public shm_job {
 public:
  static constexpr const char* name = "shm_near_look";
  explicit shm_job_near_look(int ranks) : shm_job(ranks, (std::uint32_t{3} << 30) - 5) {}
};

/// A message as it was received.
struct received {
  int source;
  message_class kind;
  std::uint16_t handler;
  std::uint16_t flags;
  std::uint64_t ticket;
  std::vector<unsigned char> bytes;
};

/// Content that follows from the ticket.
inline unsigned char byte_of(std::uint64_t ticket, std::size_t i) {
  return static_cast<unsigned char>(ticket * 37 + i * 11 + (i >> 9));
}
inline bool content_is_right(const received& m) {
  for (std::size_t i = 0; i < m.bytes.size(); ++i) {
    if (m.bytes[i] != byte_of(m.ticket, i)) return false;
  }
  return true;
}

/// False when there is no room.
inline bool send(transport& from, int to, message_class kind, std::uint64_t ticket,
                 std::size_t bytes, std::uint16_t handler = 1, std::uint16_t flags = 0) {
  std::byte* room = from.reserve(to, kind, bytes);
  if (room == nullptr) return false;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 16, 0u);
  for (std::size_t i = 0; i < bytes; ++i) room[i] = std::byte{byte_of(ticket, i)};
  from.commit(to, kind, handler, flags, ticket);
  return true;
}

/// Polls once; every message is copied and consumed. Stops after `stop_after`. What a network has
/// brought is looked at first, which poll() itself does only now and then.
inline std::vector<received> poll(transport& at, int most = 1 << 20, std::size_t stop_after = ~0u) {
  struct context {
    transport& at;
    std::size_t stop_after;
    std::vector<received> got;
  } c{at, stop_after, {}};
  (void)at.anything_arrived();
  int n = at.poll(
      [](arrival& a, void* p) {
        auto& to = *static_cast<context*>(p);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.payload) % 16, 0u);
        received m{a.source, a.kind, a.handler, a.flags, a.ticket, {}};
        m.bytes.resize(a.bytes);
        if (a.bytes > 0) std::memcpy(m.bytes.data(), a.payload, a.bytes);
        to.at.consume(a);
        to.got.push_back(std::move(m));
        return to.got.size() >= to.stop_after;
      },
      &c, most);
  EXPECT_EQ(static_cast<std::size_t>(n), c.got.size());
  return std::move(c.got);
}

/// The same for a job whose ranks one thread plays: all that was sent is there first.
template <class Job>
std::vector<received> poll_at(Job& job, int rank, int most = 1 << 20,
                              std::size_t stop_after = ~0u) {
  job.settle();
  return poll(job.at(rank), most, stop_after);
}
/// Polls until nothing more comes.
template <class Job>
std::vector<received> poll_all(Job& job, int rank) {
  std::vector<received> all;
  for (;;) {
    auto got = poll_at(job, rank);
    if (got.empty()) return all;
    for (auto& m : got) all.push_back(std::move(m));
  }
}

}  // namespace conformance
