// SPDX-License-Identifier: Apache-2.0
// The memory of marshalled values: the buffers they are read into, what this rank keeps until
// others have read it, and reading what others keep.
#include "sojourn/detail/marshalled.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_map>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/address_map.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "rpc/read_in_parts.hpp"
#include "rpc/rpc.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/rank.hpp"

namespace sojourn::detail {

// ---- Long blocks ------------------------------------------------------------------------------

namespace {

// Shorter blocks are left to the C library.
constexpr std::size_t pooled_from = 256u << 10;
// A rank keeps at most this much in free blocks, if it has sent or received as much at a time.
constexpr std::size_t pooled_max = 256u << 20;
// Beyond this, the system is told that it may take back the memory of free blocks: a call to it for
// each block, which most programs are spared.
constexpr std::size_t pooled_for_good = 64u << 20;
// Blocks of this size or more lie in large pages: with pages of 4 KiB, the first use of new memory
// takes longer than a copy into it.
constexpr std::size_t large_from = 4u << 20;
constexpr std::size_t large_page = 2u << 20;

std::align_val_t alignment_of(std::size_t capacity) {
  return std::align_val_t(capacity >= large_from ? large_page : 16);
}

struct free_block {
  std::byte* memory;
  std::size_t capacity;
};
struct block_pool {
  std::vector<free_block> free;
  std::size_t bytes = 0;
};
block_pool& pool() {
  // Never destroyed: buffers of static storage give back their blocks when the process ends.
  static block_pool& p = *new block_pool;
  return p;
}

/// Lets the system take back the block's whole pages; they stay as long as it has others.
void give_back_when_needed(std::byte* memory, std::size_t bytes) {
  constexpr std::uintptr_t page = 4096;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t from = (first + page - 1) & ~(page - 1);
  const std::uintptr_t to = (first + bytes) & ~(page - 1);
  madvise(reinterpret_cast<void*>(from), to - from, MADV_FREE);
}

}  // namespace

pooled_block::pooled_block(std::size_t bytes) : capacity_(std::max<std::size_t>(bytes, 16)) {
  if (capacity_ >= pooled_from) {
    std::vector<free_block>& free = pool().free;
    // The smallest free block that is long enough, and not so long that most of it would be wasted.
    auto best = free.end();
    for (auto it = free.begin(); it != free.end(); ++it) {
      if (it->capacity < capacity_ || it->capacity / 2 > capacity_) continue;
      if (best == free.end() || it->capacity < best->capacity) best = it;
    }
    if (best != free.end()) {
      memory_ = best->memory;
      capacity_ = best->capacity;
      pool().bytes -= capacity_;
      *best = free.back();
      free.pop_back();
      return;
    }
  }
  memory_ = static_cast<std::byte*>(::operator new(capacity_, alignment_of(capacity_)));
  want_large_pages(memory_, capacity_);
}

pooled_block::~pooled_block() {
  if (memory_ == nullptr) return;
  if (capacity_ >= pooled_from && pool().bytes + capacity_ <= pooled_max) {
    try {
      pool().free.push_back({memory_, capacity_});
      pool().bytes += capacity_;
      if (pool().bytes > pooled_for_good) give_back_when_needed(memory_, capacity_);
      return;
    } catch (const std::bad_alloc&) {  // Then the block is not kept.
    }
  }
  ::operator delete(memory_, alignment_of(capacity_));
}

void want_large_pages(void* memory, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t from = (first + large_page - 1) & ~(large_page - 1);
  const std::uintptr_t to = (first + bytes) & ~(large_page - 1);
  // Where the system has no large pages, small ones do.
  if (bytes >= large_from && from < to) {
    madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
  }
}

// ---- What is kept ---------------------------------------------------------------------------

kept_values::~kept_values() = default;

std::uint64_t kept_values::keep(const void* first, std::size_t bytes, bool borrowed) {
  // Pages of shared memory may be elsewhere when the reader copies them, or have been changed.
  if (borrowed || addresses.in_shared(reinterpret_cast<std::uint64_t>(first))) {
    std::byte* copy = copy_room(bytes);
    std::memcpy(copy, first, bytes);
    counts.marshal_copies += bytes;
    return reinterpret_cast<std::uint64_t>(copy);
  }
  auto address = reinterpret_cast<std::uint64_t>(first);
  blocks_.push_back({address, bytes});
  total_ += bytes;
  return address;
}

std::byte* kept_values::copy_room(std::size_t bytes) {
  copies_.emplace_back(bytes);
  std::byte* room = copies_.back().get();
  blocks_.push_back({reinterpret_cast<std::uint64_t>(room), bytes});
  total_ += bytes;
  return room;
}

bool kept_values::has(std::uint64_t address, std::uint64_t bytes) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const block& b) {
    std::uint64_t offset = address - b.address;
    return offset < b.bytes && bytes <= b.bytes - offset;
  });
}

namespace {

// A rank whose calls would keep more than this for others waits, unless it keeps nothing else.
constexpr std::size_t kept_at_once_max = 256u << 20;
// How many lines a rank prints about messages that it refuses; all of them are counted.
constexpr int refusals_told_max = 8;
// Between two parts of a long copy other fibers and messages get their turn.
constexpr std::size_t copied_at_once = 8u << 20;
constexpr std::size_t asked_at_once = 128u << 10;

struct kept_entry {
  std::unique_ptr<kept_values> values;
  unsigned lent = 0;       ///< Messages that have not left, and read the values then.
  bool has_ended = false;  ///< Nobody reads them any more.
};
struct keeper {
  std::unordered_map<std::uint64_t, kept_entry> kept;
  std::size_t ended = 0;  ///< Of these, entries that have.
  std::uint64_t last = 0;
  std::size_t bytes = 0;
  std::deque<ticket_id> waiting;
};
keeper& here() {
  // Never destroyed: futures of static storage drop their results when the process ends.
  static keeper& k = *new keeper;
  return k;
}

void tell_refusal(const std::string& what) {
  static int told = 0;
  if (told == refusals_told_max) return;
  ++told;
  std::fprintf(
      stderr, "sojourn: %s%s\n", what.c_str(),
      told == refusals_told_max ? " (further ones are only counted, as messages_refused)" : "");
}

/// Null when they are not kept (any more).
kept_entry* find_kept(std::uint64_t holder) {
  auto found = here().kept.find(holder);
  return found == here().kept.end() || found->second.has_ended ? nullptr : &found->second;
}

/// Called wherever messages leave, also in a signal handler: what has ended is freed later.
void part_has_left(void* entry) { --static_cast<kept_entry*>(entry)->lent; }

/// A message may have come before this rank's network says that it has left.
void free_what_has_ended() {
  if (here().ended == 0) return;
  here().ended -= std::erase_if(
      here().kept, [](const auto& one) { return one.second.has_ended && one.second.lent == 0; });
}

/// Null when they are not kept (any more), or are still being sent.
std::unique_ptr<kept_values> end_keeping_here(std::uint64_t holder) {
  free_what_has_ended();
  kept_entry* const found = find_kept(holder);
  if (found == nullptr) return nullptr;
  here().bytes -= found->values->total();
  std::unique_ptr<kept_values> values;
  if (found->lent == 0) {
    values = std::move(found->values);
    here().kept.erase(holder);
  } else {
    found->has_ended = true;
    ++here().ended;
  }
  for (; !here().waiting.empty(); here().waiting.pop_front()) {
    if (ticket* t = find_ticket(here().waiting.front())) complete_ticket(t, nullptr, 0);
  }
  return values;
}

void on_kept_ended(arrival& a) {
  std::uint64_t holder = a.ticket;
  wire().consume(a);
  end_keeping_here(holder);
}

struct read_request {
  std::uint64_t holder;
  std::uint64_t address;
  std::uint64_t bytes;
};

void refuse_read(ticket_id ticket, const read_request& r) {
  send_exception(
      ticket, std::make_exception_ptr(malformed_message(format(
                  "a message refers to %llu bytes at 0x%llx of rank %d, which keeps no such values",
                  static_cast<unsigned long long>(r.bytes),
                  static_cast<unsigned long long>(r.address), job.me))));
}

void on_kept_read(arrival& a, const read_request& r) {
  ticket_id ticket = checked_ticket(a, a.ticket);
  wire().consume(a);
  kept_entry* const kept = find_kept(r.holder);
  if (kept == nullptr || r.bytes > asked_at_once || !kept->values->has(r.address, r.bytes)) {
    return refuse_read(ticket, r);
  }
  ++kept->lent;
  if (lend_reply(home_of(ticket), runtime_message::result, ticket,
                 {reinterpret_cast<const std::byte*>(r.address), r.bytes, part_has_left, kept}))
    return;
  --kept->lent;
  send_result(ticket, reinterpret_cast<const void*>(r.address), r.bytes);
}

/// For systems that do not let ranks copy each other's memory.
void read_by_messages(int home, std::uint64_t holder, std::uint64_t address, std::byte* to,
                      std::size_t bytes) {
  read_in_parts(to, bytes, asked_at_once, [&](std::size_t offset, std::size_t n) {
    const read_request r{holder, address + offset, n};
    std::byte* room = reserve_request(home, sizeof r);
    std::memcpy(room, &r, sizeof r);
    const ticket_id ticket = open_answer(home);
    ++counts.bulk_messages;
    commit_message(home, message_class::request, runtime_message::kept_read, 0, ticket);
    return ticket;
  });
}

/// `since_turn`: bytes copied since other fibers had their turn.
void read_kept_block(int home, std::uint64_t holder, std::uint64_t address, void* to,
                     std::size_t bytes, std::size_t& since_turn) {
  auto* into = static_cast<std::byte*>(to);
  if (home == job.me) {
    const kept_entry* kept = find_kept(holder);
    if (kept == nullptr || !kept->values->has(address, bytes)) {
      malformed("it refers to a block that its sender does not keep");
    }
  }
  for (std::size_t done = 0; done < bytes;) {
    if (since_turn >= copied_at_once) {
      // A forged message may have come to a handler that runs in no fiber.
      if (running_piece() != nullptr) yield();
      since_turn = 0;
    }
    std::size_t n = std::min(bytes - done, copied_at_once - since_turn);
    if (home == job.me) {
      std::memcpy(into + done, reinterpret_cast<const std::byte*>(address) + done, n);
    } else if (!wire().read_memory(home, address + done, into + done, n)) {
      return read_by_messages(home, holder, address + done, into + done, bytes - done);
    }
    done += n;
    since_turn += n;
  }
}

}  // namespace

void attach_kept() {
  on_message<read_request, on_kept_read>(runtime_message::kept_read);
  on_message(runtime_message::kept_ended, on_kept_ended);
}

std::uint64_t keep_for_reader(std::unique_ptr<kept_values> values) {
  std::uint64_t holder = ++here().last;
  here().bytes += values->total();
  here().kept.emplace(holder, kept_entry{std::move(values)});
  return holder;
}

bool values_are_kept() { return here().kept.size() != here().ended; }

void wait_for_room_to_keep(std::size_t bytes) {
  while (here().bytes != 0 && here().bytes + bytes > kept_at_once_max) {
    ++counts.suspensions_for_room;
    ticket_id woken = ticket_open();
    here().waiting.push_back(woken);
    ticket_take(woken, nullptr, 0);
  }
}

void end_keeping(int home, std::uint64_t holder) {
  if (home == job.me) {
    (void)end_keeping_here(holder);
    return;
  }
  send_reply(home, runtime_message::kept_ended, 0, holder, nullptr, 0);
}

void drop_kept_result(const void* bytes, std::size_t size) {
  marshalled_header header;
  kept_place place;
  if (size < sizeof header + sizeof place) return;
  std::memcpy(&header, bytes, sizeof header);
  std::memcpy(&place, static_cast<const std::byte*>(bytes) + sizeof header, sizeof place);
  if (header.home < 0 || header.home >= job.count) return;
  end_keeping(header.home, place.holder);
}

// ---- Buffers ----------------------------------------------------------------------------------

receive_buffer::~receive_buffer() {
  clear();
  ::operator delete(memory_, std::align_val_t(16));
}

std::byte* receive_buffer::room(std::size_t bytes) {
  std::size_t rounded = (bytes + 15) / 16 * 16;
  std::size_t at = used_;
  used_ += rounded;
  if (used_ <= capacity_) return memory_ + at;
  more_.emplace_back(rounded);
  return more_.back().get();
}

void receive_buffer::clear() {
  more_.clear();
  if (used_ > capacity_ && used_ <= stays_max) {
    ::operator delete(std::exchange(memory_, nullptr), std::align_val_t(16));
    capacity_ = 0;
    memory_ = static_cast<std::byte*>(::operator new(used_, std::align_val_t(16), std::nothrow));
    if (memory_ != nullptr) capacity_ = used_;
  }
  used_ = 0;
}

std::unique_ptr<receive_buffer> receive_buffers::take() {
  if (free_.empty()) return std::make_unique<receive_buffer>();
  std::unique_ptr<receive_buffer> buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void receive_buffers::give_back(std::unique_ptr<receive_buffer> buffer) {
  // Enough for handlers that take turns; more calls than that at once have buffers of their own.
  constexpr std::size_t stay_max = 4;
  if (free_.size() == stay_max) return;
  buffer->clear();
  free_.push_back(std::move(buffer));
}

// ---- Messages ---------------------------------------------------------------------------------

incoming::incoming(const std::byte* message, std::size_t bytes, int source,
                   receive_buffers* buffers)
    : how_(marshalled_header::form::whole), source_(source), buffers_(buffers) {
  try {
    marshalled_header header;
    if (bytes < sizeof header) malformed("it ends within its header");
    std::memcpy(&header, message, sizeof header);
    std::size_t left = bytes - sizeof header;
    how_ = header.how;
    home_ = header.home;
    bytes_ = header.bytes;
    values_ = message + sizeof header;
    switch (how_) {
      case marshalled_header::form::whole:
        if (header.bytes > left) malformed("it is shorter than its header says");
        return;
      case marshalled_header::form::abandoned:
        return;
      case marshalled_header::form::kept:
        break;
      default:
        how_ = marshalled_header::form::whole;
        malformed("its header has an unknown form");
    }
    kept_place place;
    if (left < sizeof place) malformed("it ends within its header");
    std::memcpy(&place, values_, sizeof place);
    if (home_ < 0 || home_ >= job.count) malformed("it names a rank that does not exist");
    holder_ = place.holder;
    skeleton_at_ = place.address;
    if (bytes_ > marshalled_max) malformed("its values are longer than a message may be");
    // The values must be out of the message before anything waits.
    if (!buffer_)
      buffer_ = buffers_ != nullptr ? buffers_->take() : std::make_unique<receive_buffer>();
    std::byte* copy = nullptr;
    if (skeleton_at_ == 0) {
      if (bytes_ > left - sizeof place) malformed("it is shorter than its header says");
      copy = buffer_->room(bytes_);
      if (bytes_ != 0) std::memcpy(copy, values_ + sizeof place, bytes_);
      counts.marshal_copies += bytes_;
    }
    values_ = copy;
  } catch (...) {
    failure_ = std::current_exception();
    if (holder_ != 0) end();
    note_failure();
  }
}

incoming::~incoming() {
  // The call was refused before its values were read.
  if (how_ == marshalled_header::form::kept && holder_ != 0) end();
  if (buffer_ != nullptr && buffers_ != nullptr) buffers_->give_back(std::move(buffer_));
}

void incoming::expect(std::uint64_t address, std::size_t bytes) {
  std::byte last;
  std::size_t looked_at = 0;
  try {
    read_kept_block(home_, holder_, address, &last, 1, looked_at);
    read_kept_block(home_, holder_, address + bytes - 1, &last, 1, looked_at);
  } catch (const rank_lost&) {
    throw;
  } catch (const error&) {
    malformed("it refers to a block that its sender does not keep");
  }
}

void incoming::read(std::uint64_t address, void* to, std::size_t bytes) {
  read_kept_block(home_, holder_, address, to, bytes, since_turn_);
}

std::byte* incoming::room(std::size_t bytes) {
  if (buffer_ == nullptr) buffer_ = buffers_->take();
  return buffer_->room(bytes);
}

void incoming::fetch_skeleton() {
  if (skeleton_at_ == 0) return;
  if (bytes_ != 0) expect(skeleton_at_, bytes_);
  std::byte* room = buffer_->room(bytes_);
  read_kept_block(home_, holder_, skeleton_at_, room, bytes_, since_turn_);
  counts.marshal_copies += bytes_;
  values_ = room;
}

void incoming::end() {
  end_keeping(home_, holder_);
  how_ = marshalled_header::form::whole;
}

/// Says at both ends what was wrong with a malformed message. What users' functions throw is passed
/// on as it is.
void incoming::note_failure() {
  std::string what;
  try {
    std::rethrow_exception(failure_);
  } catch (const malformed_message& e) {
    what = e.what();
  } catch (...) {
    return;
  }
  ++counts.messages_refused;
  if (source_ < 0) return;
  what = format("rank %d refuses a call from rank %d: %s", job.me, source_, what.c_str());
  tell_refusal(what);
  failure_ = std::make_exception_ptr(malformed_message(what));
}

void refuse_request(request& message, std::size_t needed) {
  ++counts.messages_refused;
  std::string what = format(
      "rank %d refuses a call from rank %d: a message of %u bytes ends before its %zu bytes of "
      "arguments",
      job.me, message.source, message.bytes, needed);
  tell_refusal(what);
  ticket_id answer = message.ticket;
  message.consume();
  auto failure = std::make_exception_ptr(malformed_message(what));
  if (answer != 0) return send_exception(answer, failure);
  one_way_failed(failure);
}

void refuse_object(std::uint64_t address) {
  ++counts.messages_refused;
  std::string what =
      format("rank %d refuses a method call: the object at 0x%llx is not in its heap", job.me,
             static_cast<unsigned long long>(address));
  tell_refusal(what);
  throw malformed_message(what);
}

void too_long_for_a_message(std::size_t bytes) {
  throw error(
      format("values of %zu bytes are too long for a call, which takes at most %llu: move them "
             "with put and get",
             bytes, static_cast<unsigned long long>(marshalled_max)));
}

void write_header(std::byte* message, marshalled_header::form how, std::size_t bytes) {
  marshalled_header header{how, job.me, bytes};
  std::memcpy(message, &header, sizeof header);
}

bool marshals_apart = false;

void written_apart::write(std::byte* message) const {
  write_header(message, marshalled_header::form::whole, bytes_);
  if (bytes_ != 0) std::memcpy(message + header_room, kept_.get(), bytes_);
  counts.marshalled_bytes += bytes_;
  counts.marshal_copies += 2 * bytes_;
}

void abandon(std::byte* message, std::size_t room, const std::exception_ptr& failure) {
  std::string text = "an exception that is not a std::exception";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  const std::size_t size =
      put_text(reinterpret_cast<char*>(message + header_room), room - header_room, text);
  write_header(message, marshalled_header::form::abandoned, size);
}

void throw_abandoned(const held_result& result) {
  marshalled_header header;
  std::memcpy(&header, result.bytes, sizeof header);
  std::size_t size = std::min<std::size_t>(header.bytes, result.size - sizeof header);
  std::string text(reinterpret_cast<const char*>(result.bytes + sizeof header), size);
  throw error(format("rank %d cannot marshal a result: %s", header.home, text.c_str()));
}

void send_result_that_stays(ticket_id id, std::unique_ptr<kept_values> value) {
  std::byte* room = begin_result(id, kept_header_room);
  if (room == nullptr) return;
  write_header(room, marshalled_header::form::kept, 0);
  const kept_place place{keep_for_reader(std::move(value)), 0};
  std::memcpy(room + header_room, &place, sizeof place);
  commit_result(id, room, kept_header_room, true);
}

std::unique_ptr<kept_values> take_result_that_stays(ticket_id id) {
  const held_result result = ticket_hold(id);
  marshalled_header header{};
  kept_place place{};
  if (result.size == kept_header_room) {
    std::memcpy(&header, result.bytes, sizeof header);
    std::memcpy(&place, result.bytes + header_room, sizeof place);
  }
  if (header.home != job.me) drop_kept_result(result.bytes, result.size);
  ticket_release(result);
  if (header.home != job.me) {
    throw error(
        format("a result of a type that cannot travel is asked for on rank %d, and is on "
               "rank %d: take it there, or describe how the type is marshalled "
               "(docs/marshalling.md)",
               job.me, header.home));
  }
  return end_keeping_here(place.holder);
}

void message_of_kept_values::write(std::byte* message) {
  write_header(message, marshalled_header::form::kept, skeleton_bytes_);
  bool fits = skeleton_bytes_ <= whole_max;
  kept_place place{0, fits ? 0 : reinterpret_cast<std::uint64_t>(skeleton_)};
  if (fits) std::memcpy(message + kept_header_room, skeleton_, skeleton_bytes_);
  place.holder = keep_for_reader(std::move(values_));
  std::memcpy(message + header_room, &place, sizeof place);
}

}  // namespace sojourn::detail
