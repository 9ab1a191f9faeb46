// SPDX-License-Identifier: Apache-2.0
// Values that own memory, in messages. Up to whole_max bytes (whole_request_max in requests) they
// are written into the message, and read where it arrives. Of larger values, long blocks of bytes
// (the storage of vectors and strings) stay where they are: the message says where, and the
// receiver copies each block once, into its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/calls/marshal.hpp"
#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/detail/codec.hpp"
#include "sojourn/detail/counts.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// Longer values are not written into the message as a whole. A rank has 16 MiB for its long
/// messages. For arguments the limit is just above 4 MiB. Up to there, a whole message is faster:
/// its two copies, in memory that both ranks have in use anyway, take less time than the three
/// copies of values that the caller only lends (one to keep them, one by the system, one into
/// place). For results the limit is lower, because a whole result is copied once more, into its
/// ticket.
inline constexpr std::size_t whole_request_max = (4u << 20) + (64u << 10);
inline constexpr std::size_t whole_max = 512u << 10;

/// Precedes marshalled values. It lies at a multiple of 16, and so do the values after it.
struct marshalled_header {
  enum class form : std::uint32_t {
    whole = 0x5041'0001,
    kept,       ///< A kept_place follows, then the values without their long blocks.
    abandoned,  ///< The values could not be written: nothing is to be done. The reason follows.
  };
  form how;
  std::int32_t home;    ///< The rank that keeps the blocks.
  std::uint64_t bytes;  ///< How many bytes the values take as they are written.
};
struct kept_place {
  std::uint64_t holder;
  std::uint64_t address;  ///< Where the values without their blocks are, if too long to go; or 0.
};

/// While such an object lives, its fiber stays here: what the fiber's frames own lies in this
/// rank's memory.
class stays_here : private hold {
 public:
  stays_here() : hold{running.holds} { running.holds = this; }
  ~stays_here() { running.holds = outer; }
  stays_here(const stays_here&) = delete;
  stays_here& operator=(const stays_here&) = delete;
};

/// Memory for long blocks, aligned to 16. Memory that was given back is used again, up to a limit,
/// so that the system need not provide new pages for each call.
class pooled_block {
 public:
  explicit pooled_block(std::size_t bytes);
  pooled_block(pooled_block&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), capacity_(other.capacity_) {}
  pooled_block& operator=(pooled_block&&) = delete;
  ~pooled_block();
  std::byte* get() const { return memory_; }

 private:
  std::byte* memory_;
  std::size_t capacity_;
};

/// Values on their way that another rank has not read yet, and copies of those that were only lent.
class kept_values : public block_keeper {
 public:
  kept_values() = default;
  kept_values(const kept_values&) = delete;
  kept_values& operator=(const kept_values&) = delete;
  ~kept_values() override;

  std::uint64_t keep(const void* first, std::size_t bytes, bool borrowed) final;
  std::byte* copy_room(std::size_t bytes);
  /// True when these bytes lie in one block that is kept.
  bool has(std::uint64_t address, std::uint64_t bytes) const;
  std::size_t total() const { return total_; }

 private:
  struct block {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  std::vector<block> blocks_;
  std::vector<pooled_block> copies_;
  std::size_t total_ = 0;
};

template <class... T>
class kept_tuple final : public kept_values {
 public:
  explicit kept_tuple(T&&... values) : values_(std::move(values)...) {}
  std::tuple<T...>& values() { return values_; }

 private:
  std::tuple<T...> values_;
};

/// A value of a type that cannot travel: a result that is taken on the rank that made it.
template <class T>
class kept_value final : public kept_values {
 public:
  explicit kept_value(T&& value) : value_(std::move(value)) {}
  T& value() { return value_; }

 private:
  T value_;
};

/// Keeps values and their blocks until another rank has read them; returns the number by which that
/// rank names them.
std::uint64_t keep_for_reader(std::unique_ptr<kept_values> values);
/// Suspends while this rank keeps so much for others that `bytes` more would be too much.
void wait_for_room_to_keep(std::size_t bytes);
/// Tells the rank `home` that it need keep the values `holder` no longer. Never suspends; any
/// stack.
void end_keeping(int home, std::uint64_t holder);
/// The same for a result that nobody takes.
void drop_kept_result(const void* bytes, std::size_t size);

/// A buffer for the handlers of one kind of call: it is lent to one after the other.
class receive_buffer {
 public:
  receive_buffer() = default;
  receive_buffer(const receive_buffer&) = delete;
  receive_buffer& operator=(const receive_buffer&) = delete;
  ~receive_buffer();

  /// Room aligned to 16, valid until clear().
  std::byte* room(std::size_t bytes);
  /// If the buffer was too short for this call, makes it long enough for the next such call.
  void clear();

 private:
  static constexpr std::size_t stays_max = 1u << 20;
  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::vector<pooled_block> more_;
};
class receive_buffers {
 public:
  std::unique_ptr<receive_buffer> take();
  void give_back(std::unique_ptr<receive_buffer> buffer);

 private:
  std::vector<std::unique_ptr<receive_buffer>> free_;
};

/// Reads the values of a message. `buffers`: where the elements of views are copied; null: views
/// are read in the message. The constructor never throws: errors are thrown by read_kept().
class incoming : private block_source {
 public:
  /// `source`: the rank that called; -1 for a result.
  incoming(const std::byte* message, std::size_t bytes, int source, receive_buffers* buffers);
  ~incoming() override;
  incoming(const incoming&) = delete;
  incoming& operator=(const incoming&) = delete;

  bool abandoned() const { return how_ == marshalled_header::form::abandoned; }
  /// True when the values are in the message: they must be read before it is given back.
  bool is_whole() const { return how_ == marshalled_header::form::whole && failure_ == nullptr; }

  /// Reads the values by read(reader), and notes an exception instead of throwing it.
  template <class Read>
  void read_whole(Read read) {
    reader from(values_, bytes_, buffers_ != nullptr ? this : nullptr);
    try {
      nonblocking promise;
      read(from);
      from.expect_end();
    } catch (...) {
      failure_ = std::current_exception();
      note_failure();
    }
    counts.marshal_copies += from.copied();
  }
  /// Reads values that are not in the message, and suspends meanwhile. Throws also the exception
  /// that was noted before.
  template <class Read>
  void read_kept(Read read) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (how_ != marshalled_header::form::kept) return;
    stays_here stays;
    try {
      fetch_skeleton();
      reader from(values_, bytes_, this, true);
      read(from);
      from.expect_end();
      counts.marshal_copies += from.copied();
    } catch (...) {
      failure_ = std::current_exception();
    }
    end();
    if (failure_ != nullptr) {
      note_failure();
      std::rethrow_exception(failure_);
    }
  }

 private:
  void expect(std::uint64_t address, std::size_t bytes) override;
  void read(std::uint64_t address, void* to, std::size_t bytes) override;
  std::byte* room(std::size_t bytes) override;
  void fetch_skeleton();
  void note_failure();
  void end();

  marshalled_header::form how_;
  int home_ = 0;
  int source_;
  std::uint64_t holder_ = 0;
  std::uint64_t skeleton_at_ = 0;
  const std::byte* values_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t since_turn_ = 0;  ///< Bytes copied since other fibers had a turn.
  receive_buffers* buffers_;
  std::unique_ptr<receive_buffer> buffer_;
  std::exception_ptr failure_;
};

/// The values of a message: read at once when they are in it, otherwise by get().
template <class... T>
class incoming_values : public incoming {
 public:
  incoming_values(const std::byte* message, std::size_t bytes, int source, receive_buffers* buffers)
      : incoming(message, bytes, source, buffers) {
    if (is_whole()) read_whole([this](reader& from) { make(from); });
  }
  ~incoming_values() override {
    if (made_) std::destroy_at(&values_.value);
  }
  /// Suspends if the values are not in the message. Throws what reading them threw.
  std::tuple<T...>& get() {
    read_kept([this](reader& from) { make(from); });
    return values_.value;
  }

 private:
  void make(reader& from) {
    if constexpr (sizeof...(T) == 0) {
      ::new (static_cast<void*>(&values_.value)) std::tuple<>();
    } else {
      ::new (static_cast<void*>(&values_.value))
          std::tuple<T...>(make_value<std::tuple<T...>>(from));
    }
    made_ = true;
  }
  union storage {
    storage() {}
    ~storage() {}
    std::tuple<T...> value;
  } values_;
  bool made_ = false;
};

// ---- Sending ----------------------------------------------------------------------------------

/// How many bytes values take, whole and without their long blocks. Throws what measuring them
/// throws.
struct measured {
  std::size_t whole;
  std::size_t skeleton;
  bool is_long(std::size_t whole_at_most) const { return whole > whole_at_most; }
};
template <class... T>
measured measure(const T&... values) {
  sizer size;
  (save_value(size, values), ...);
  return {size.whole(), size.skeleton()};
}
[[noreturn]] void too_long_for_a_message(std::size_t bytes);

void write_header(std::byte* message, marshalled_header::form how, std::size_t bytes);
void abandon(std::byte* message, std::size_t room, const std::exception_ptr& failure);

inline constexpr std::size_t header_room = sizeof(marshalled_header);
inline constexpr std::size_t kept_header_room = header_room + sizeof(kept_place);

/// Writes a header and the values into room for both. If that throws, returns the exception, and
/// the receiver is told to do nothing.
template <class... T>
std::exception_ptr write_whole(std::byte* message, std::size_t bytes, const T&... values) {
  try {
    nonblocking promise;
    writer to(message + header_room, bytes);
    (save_value(to, values), ...);
    if (to.left() != 0) cannot_be_saved("its `save` writes less the second time");
  } catch (...) {
    std::exception_ptr failure = std::current_exception();
    abandon(message, header_room + bytes, failure);
    return failure;
  }
  write_header(message, marshalled_header::form::whole, bytes);
  counts.marshalled_bytes += bytes;
  counts.marshal_copies += bytes;
  return nullptr;
}

/// True once this rank has begun to use shared memory. A type's `save` may then store to shared
/// memory, and the receiver must see these stores: so values are written, and the stores announced,
/// before room for the message is asked for. `save` may also have to wait for a page: other fibers
/// run meanwhile, which is forbidden while a message is half written.
extern bool marshals_apart;

/// Values that are written before there is room for their message.
class written_apart {
 public:
  /// Throws what writing them throws.
  template <class... T>
  explicit written_apart(std::size_t size, const T&... values) : kept_(size), bytes_(size) {
    stays_here stays;
    writer to(kept_.get(), size);
    (save_value(to, values), ...);
    if (to.left() != 0) cannot_be_saved("its `save` writes less the second time");
  }
  std::size_t bytes() const { return header_room + bytes_; }
  /// Writes the message into room of bytes() bytes.
  void write(std::byte* message) const;

 private:
  pooled_block kept_;
  std::size_t bytes_;
};

/// A message whose values are kept on this rank until the receiver has read them.
class message_of_kept_values {
 public:
  /// Moves the values. Throws what writing them throws.
  template <class... T>
  explicit message_of_kept_values(const measured& size, T&&... values) {
    static_assert((!std::is_lvalue_reference_v<T> && ...));
    if (size.whole > marshalled_max) too_long_for_a_message(size.whole);
    auto kept = std::make_unique<kept_tuple<std::remove_cvref_t<T>...>>(std::move(values)...);
    // Written to separate memory first, so that an exception is thrown before room for the message
    // is asked for.
    std::byte* skeleton = kept->copy_room(size.skeleton);
    writer to(skeleton, size.skeleton, kept.get());
    std::apply([&](const auto&... v) { (save_value(to, v), ...); }, kept->values());
    if (to.left() != 0) cannot_be_saved("its `save` writes less the second time");
    skeleton_ = skeleton;
    skeleton_bytes_ = size.skeleton;
    values_ = std::move(kept);
    counts.marshalled_bytes += size.whole;
    counts.marshal_copies += size.skeleton;
  }
  std::size_t bytes() const {
    return kept_header_room + (skeleton_bytes_ <= whole_max ? skeleton_bytes_ : 0);
  }
  std::size_t kept_bytes() const { return values_->total(); }
  /// Writes the message into room of bytes() bytes. From now on the values are kept.
  void write(std::byte* message);

 private:
  std::unique_ptr<kept_values> values_;
  const std::byte* skeleton_;
  std::size_t skeleton_bytes_;
};

// ---- Results ----------------------------------------------------------------------------------

/// begin_result returns room for the bytes of a result, or null when nobody waits for it;
/// commit_result sends them.
std::byte* begin_result(ticket_id id, std::size_t bytes);
void commit_result(ticket_id id, std::byte* room, std::size_t bytes, bool is_kept);

template <class R>
void send_marshalled_result(ticket_id id, R&& value) {
  measured size = measure(value);
  if (size.is_long(whole_max)) [[unlikely]] {
    message_of_kept_values kept(size, std::move(value));
    std::size_t bytes = kept.bytes();
    std::byte* room = begin_result(id, bytes);
    if (room == nullptr) return;
    kept.write(room);
    return commit_result(id, room, bytes, true);
  }
  std::size_t bytes = header_room + size.whole;
  if (marshals_apart) [[unlikely]] {
    std::optional<written_apart> apart;
    std::exception_ptr failure;
    try {
      apart.emplace(size.whole, value);
    } catch (...) {
      failure = std::current_exception();
    }
    std::byte* room = begin_result(id, bytes);
    if (room == nullptr) return;
    if (apart)
      apart->write(room);
    else
      abandon(room, bytes, failure);
    return commit_result(id, room, bytes, false);
  }
  std::byte* room = begin_result(id, bytes);
  if (room == nullptr) return;
  (void)write_whole(room, size.whole, value);  // the message tells the receiver of a failure
  commit_result(id, room, bytes, false);
}

/// Sends what names a value that stays here; it is destroyed if nobody takes it.
void send_result_that_stays(ticket_id id, std::unique_ptr<kept_values> value);
/// Suspends until the result is here; rethrows an exception. Throws sojourn::error when the value
/// stays on another rank.
std::unique_ptr<kept_values> take_result_that_stays(ticket_id id);

template <class R>
R take_value_that_stays(ticket_id id) {
  const std::unique_ptr<kept_values> kept = take_result_that_stays(id);
  auto* const typed = dynamic_cast<kept_value<R>*>(kept.get());
  if (typed == nullptr) malformed("it names a value of another type");
  return std::move(typed->value());
}

/// A result's bytes where its ticket holds them, until ticket_release.
struct held_result {
  const std::byte* bytes;
  std::size_t size;
  void* ticket;
};
/// Suspends until the result is here; rethrows an exception.
held_result ticket_hold(ticket_id id);
void ticket_release(const held_result& result);
/// Throws the reason, noted in the message, why a result could not be written.
[[noreturn]] void throw_abandoned(const held_result& result);

template <class R>
R take_marshalled_result(ticket_id id) {
  held_result result = ticket_hold(id);
  struct release {
    const held_result& held;
    ~release() { ticket_release(held); }
  } at_end{result};
  incoming_values<R> in(result.bytes, result.size, -1, nullptr);
  if (in.abandoned()) throw_abandoned(result);
  return std::move(std::get<0>(in.get()));
}

}  // namespace sojourn::detail
