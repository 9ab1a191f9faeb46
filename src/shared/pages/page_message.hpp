// SPDX-License-Identifier: Apache-2.0
// The messages of the shared region, and their bytes. Each begins with a head; what follows depends
// on its kind, and is written and read here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <type_traits>
#include <vector>

#include "shared/pages/page.hpp"
#include "shared/pages/services.hpp"

namespace sojourn::detail::pages {

/// Kinds that the same part of a rank's shared memory handles stand together: see group_of.
enum class page_message : std::uint8_t {
  lock_request,       ///< To the lock's manager. Lock, asker; what the asker knows.
  lock_forward,       ///< To the rank that asked before. The same.
  lock_grant,         ///< lock; notices.
  arrival,            ///< To rank 0. threads, whether it is the rank's first; notices.
  arrive_with_all,    ///< Rank 0 asks for notices of other ranks, too, that the arrival knows.
  departure,          ///< What all ranks know together, whether to collect; notices.
  collect_wanted,     ///< To rank 0: a rank has more diffs than it should.
  arrive_to_collect,  ///< Rank 0 asks for an arrival without threads.
  collect_done,       ///< To rank 0: this rank fetches nothing any more.
  collect_go,         ///< Diffs and records may go.
  page_request,       ///< Pages; asker; whether it stores.
  page_reply,         ///< A page; what is in it; its bytes. Or no bytes: it is the asker's own now.
  diff_request,       ///< Pages, each with how it is asked for (lmw_parts.hpp), the first and last
                      ///< interval, and what the asker has.
  diff_reply,         ///< A page, the intervals that were asked for; their diffs.
  news,               ///< What lets a fiber go on comes next: see class news.
  event_question,  ///< To an object's home: what, its number; object, operands. See class events.
  event_answer,    ///< The question's number, how it ended; the old value.
  // Of lsw: each names a page.
  own_request,   ///< To its home: the sender wants to store.
  own_forward,   ///< To the rank that asked before. Who asks.
  own_grant,     ///< The page, which is the receiver's now. Its version; its bytes.
  read_request,  ///< To its home: the sender wants a copy.
  read_forward,  ///< To the rank that asked to store last. Who asks.
  read_reply,    ///< A copy. Its version; its bytes.
  // Of seq: each names a page.
  ask,            ///< To its home. Whether the sender stores, and whether it has a copy.
  allow,          ///< How many acknowledgements to wait for; whether data come.
  forward_load,   ///< To the owner: gives a copy to a rank.
  forward_store,  ///< To the owner: gives the page to a rank.
  invalidate,     ///< The copy goes. Whom to tell.
  acknowledge,    ///< It has gone.
  data,           ///< The page's bytes.
  confirm,        ///< To its home: the page has been used; the next one may have it.
  count_
};

/// Which part of a rank's shared memory handles a message.
enum class message_group : std::uint8_t { locks, barriers, lmw, news, events, lsw, seq, none };
constexpr message_group group_of(page_message what) {
  return what <= page_message::lock_grant     ? message_group::locks
         : what <= page_message::collect_go   ? message_group::barriers
         : what <= page_message::diff_reply   ? message_group::lmw
         : what <= page_message::news         ? message_group::news
         : what <= page_message::event_answer ? message_group::events
         : what <= page_message::read_reply   ? message_group::lsw
         : what <= page_message::confirm      ? message_group::seq
                                              : message_group::none;
}

struct message_head {
  page_message what;
  std::uint8_t flag = 0;
  std::uint16_t rank = 0;    ///< Who asks, where that is not the sender.
  std::uint32_t epoch = 0;   ///< Of the sender.
  std::uint32_t number = 0;  ///< A page or a lock, or how many pages or threads.
  std::uint32_t first = 0;   ///< Of a lock's number the lower half, and the upper one in `last`.
  std::uint32_t last = 0;
};
static_assert(sizeof(message_head) == 20);

class message_writer {
 public:
  explicit message_writer(std::pmr::memory_resource* memory) : bytes_(memory) {}

  void begin(const message_head& head) {
    // A message of many records is rare.
    if (bytes_.capacity() > kept_capacity)
      std::pmr::vector<std::byte>(bytes_.get_allocator()).swap(bytes_);
    bytes_.clear();
    group_ = group_of(head.what);
    put(head);
  }
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* from, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    if (size != 0) std::memcpy(bytes_.data() + at, from, size);
  }
  void put_clock(std::span<const std::uint32_t> clock) {
    put_bytes(clock.data(), clock.size_bytes());
  }
  /// Writes a clock in fewer bytes, for a reader that has `like`, a clock of the same length: only
  /// what differs from it. An empty `like` stands for zeros.
  void put_clock(std::span<const std::uint32_t> clock, std::span<const std::uint32_t> like);
  std::span<const std::byte> bytes() const { return bytes_; }
  message_group group() const { return group_; }

 private:
  static constexpr std::size_t kept_capacity = std::size_t{1} << 20;
  std::pmr::vector<std::byte> bytes_;
  message_group group_ = message_group::none;
};

class page_message_reader {
 public:
  page_message_reader(services& s, int from, std::span<const std::byte> bytes)
      : services_(s), from_(from), left_(bytes) {}

  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(static_cast<void*>(&value), take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take_bytes(std::size_t size) {
    if (size > left_.size()) refuse("ends before what it says it holds");
    auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  void take_clock(std::span<std::uint32_t> to) {
    std::memcpy(to.data(), take_bytes(to.size_bytes()).data(), to.size_bytes());
  }
  /// Reads what put_clock() has written with the same `like`, which may be `to` itself.
  void take_clock(std::span<std::uint32_t> to, std::span<const std::uint32_t> like);
  std::span<const std::byte> rest() const { return left_; }
  int from() const { return from_; }
  [[noreturn]] void refuse(const char* why) const {
    services_.refuse(from_, why);
    __builtin_unreachable();  // gcc 12 does not know that refuse(), which is virtual, never returns
  }
  void require(bool good, const char* why) const {
    if (!good) [[unlikely]]
      refuse(why);
  }

 private:
  services& services_;
  int from_;
  std::span<const std::byte> left_;
};

}  // namespace sojourn::detail::pages
