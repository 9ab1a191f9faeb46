// SPDX-License-Identifier: Apache-2.0
#include "object/copies.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/check.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "message/inbound.hpp"
#include "message/outbound.hpp"
#include "message/programs.hpp"
#include "object/call_places.hpp"
#include "object/object_messages.hpp"
#include "object/objects_of_rank.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

using coherence::call_name;
using coherence::woken;

objects_of_rank* objects_here = nullptr;
std::uint64_t calls_of_guests = 0;

namespace {

constexpr std::size_t usual_cache_bytes = 64u << 20;

std::size_t cache_bytes() {
  const char* text = std::getenv("SOJOURN_CACHE_BYTES");
  if (text == nullptr || *text == 0) return usual_cache_bytes;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  const std::string_view unit = end;
  unsigned shift = 0;
  if (unit == "K")
    shift = 10;
  else if (unit == "M")
    shift = 20;
  else if (unit == "G")
    shift = 30;
  const bool is_number = *text >= '0' && *text <= '9' && (unit.empty() || shift != 0);
  if (!is_number || number > (1ull << 40) >> shift)
    throw error(
        format("SOJOURN_CACHE_BYTES=%s is no number of bytes, such as 67108864 or 64M", text));
  return static_cast<std::size_t>(number) << shift;
}

/// A hold in the frames of a suspended piece, which need not be in their place.
hold hold_of(const piece* p, const hold* at) {
  const auto address = reinterpret_cast<std::uint64_t>(at);
  if (address >= p->in_place_from) return *at;
  // The image may end in the middle of it.
  const std::size_t imaged = std::min<std::uint64_t>(sizeof(hold), p->in_place_from - address);
  hold copy{nullptr};
  auto* const bytes = reinterpret_cast<std::byte*>(&copy);
  std::memcpy(bytes, p->image + (address - p->sp), imaged);
  std::memcpy(bytes + imaged, reinterpret_cast<const std::byte*>(at) + imaged,
              sizeof copy - imaged);
  return copy;
}

/// The copies on which methods run, or are suspended.
std::vector<const copy_block*> copies_in_use() {
  std::vector<const copy_block*> used;
  if (running_piece() != nullptr) {
    const std::uint64_t end = running_piece()->hi;
    for (const hold* h = running.holds; h != nullptr && reinterpret_cast<std::uint64_t>(h) < end;
         h = h->outer) {
      if (h->what == hold::kind::copy) used.push_back(static_cast<const copy_block*>(h->of));
    }
  }
  each_piece(
      [](piece* p, void* context) {
        if (p == running_piece() || p == spare_piece()) return;
        for (const hold* h = p->holds;
             h != nullptr && reinterpret_cast<std::uint64_t>(h) < p->hi;) {
          const hold read = hold_of(p, h);
          if (read.what == hold::kind::copy)
            static_cast<std::vector<const copy_block*>*>(context)->push_back(
                static_cast<const copy_block*>(read.of));
          h = read.outer;
        }
      },
      &used);
  return used;
}

}  // namespace

copy_memory& objects_of_rank::memory() {
  if (memory_ == nullptr) {
    try {
      memory_ = std::make_unique<copy_memory>(most_);
    } catch (const std::bad_alloc&) {
      // Few addresses are left (ulimit -v): there is room for few copies.
      memory_ = std::make_unique<copy_memory>(0);
    }
    job.copies = memory_->first_address();
    job.copies_bytes = memory_->address_bytes();
  }
  return *memory_;
}

asks_for_copy::then objects_of_rank::start(asks_for_copy& asks) {
  using then = asks_for_copy::then;
  copy_memory& copies_here = memory();
  if (copy_block* const block = copies_here.find(asks.address_);
      block != nullptr && is_one(*block, asks.shape_)) {
    ++counts.cache_hits;
    asks.copy_ = block;
    return then::on_copy;
  }
  ++counts.cache_misses;
  // An object of another length has its copy at the same address: a base, or a member.
  if (copies_here.find(asks.address_) != nullptr) return then::by_result;
  // The call that goes along names its method by number.
  if (runs_other_program(asks.to)) return then::by_result;
  while (copies_here.is_over() && copies_here.oldest() != nullptr) {
    makes_room_ = true;
    const bool is_evicted = rules().evict(copies_here.oldest()->address);
    makes_room_ = false;
    if (!is_evicted) break;
    ++counts.copies_evicted;
  }
  if (copies_here.is_over()) return then::by_result;
  copy_block* const room = copies_here.take(asks.address_, asks.shape_);
  if (room == nullptr) return then::by_result;
  asks.number_ = waiting_.open();
  sends_copy_ = false;
  const coherence::call c{{job.me, asks.number_}, false, nullptr};
  switch (rules().access(asks.address_, c, coherence::ask::for_copy)) {
    case coherence::next::lost:
      copies_here.give_back(room);
      waiting_.close(asks.number_);
      throw_rank_lost(asks.to, "a call");
    case coherence::next::run_on_copy:
    case coherence::next::run_on_object:
      copies_here.give_back(room);
      waiting_.close(asks.number_);
      return then::by_result;
    case coherence::next::wait:
      break;
  }
  asks.is_open_ = true;
  if (std::exchange(sends_copy_, false)) {
    waiting_.find(asks.number_)->room = room;
    return then::send;
  }
  copies_here.give_back(room);
  return then::wait;
}

asks_for_copy::then objects_of_rank::wait(asks_for_copy& asks, ticket_id ticket) {
  using then = asks_for_copy::then;
  const int told = wait_until_told(asks.number_, ticket);
  end(asks);
  if (told < 0) {  // the result of the call itself has come
    if (asks.chosen_at_ != 0) note_bringing_refused(asks.chosen_at_);
    return then::by_result;
  }
  if (ticket != 0) ticket_drop(ticket);
  switch (static_cast<woken>(told)) {
    case woken::on_copy:
      rules().begin(asks.address_);
      asks.copy_ = memory().find(asks.address_);
      // The object itself may have come home since, in place of the copy.
      if (asks.copy_ == nullptr && rules().has_object(asks.address_)) return then::on_object;
      if (asks.copy_ == nullptr && is_lost(asks.to)) throw_rank_lost(asks.to, "a call");
      SOJOURN_CHECK(asks.copy_ != nullptr, "a copy has gone before its first use");
      if (!is_one(*asks.copy_, asks.shape_)) return then::by_result;
      if (asks.chosen_at_ != 0) note_copy(asks.copy_, asks.chosen_at_);
      return then::on_copy;
    case woken::on_object:
      rules().begin(asks.address_);
      return then::on_object;
    case woken::lost:
      throw_rank_lost(asks.to, "a call");
    default:
      return then::by_result;
  }
}

asks_for_copy::then asks_for_copy::start() { return objects_here->start(*this); }
asks_for_copy::then asks_for_copy::wait(ticket_id ticket) {
  return objects_here->wait(*this, ticket);
}

outgoing asks_for_copy::begin(std::size_t payload_bytes) const {
  outgoing out = begin_fixed_request(to, sizeof(copy_or_call_header) + payload_bytes, true);
  const copy_or_call_header header{.address = address_,
                                   .number = number_,
                                   .bytes = static_cast<std::uint32_t>(shape_.bytes),
                                   .handler = 0,
                                   .is_chosen = chosen_at_ != 0,
                                   .type = shape_.type,
                                   .must_run = must_run_,
                                   .unused = 0};
  std::memcpy(out.payload, &header, sizeof header);
  out.payload += sizeof header;
  return out;
}

void asks_for_copy::commit(const outgoing& out, std::uint16_t handler) const {
  std::memcpy(out.payload - sizeof(copy_or_call_header) + offsetof(copy_or_call_header, handler),
              &handler, sizeof handler);
  commit_request(to, handler_number(fixed_handler::copy_or_call), out.ticket);
}

/// The call waits no more, or has never been sent.
void objects_of_rank::end(asks_for_copy& asks) {
  asks.is_open_ = false;
  const waiting_call was = waiting_.close(asks.number_);
  if (was.room != nullptr) memory().give_back(was.room);
  // Also when send() has told it to go on as an rpc, of which the protocol knows nothing.
  rules().ended(asks.address_, {job.me, asks.number_});
}

asks_for_copy::~asks_for_copy() {
  if (is_open_) objects_here->end(*this);
}

std::uint64_t find_original(std::uint64_t address) { return objects_here->original(address); }

// ---- Methods on copies -------------------------------------------------------------------------

/// A copy, or an object that has left, stays as long as a method is suspended on it.
void objects_of_rank::make_old(copy_block* block) {
  note_use_end(*block, makes_room_ ? use_end::made_room : use_end::given_up);
  memory_->make_old(block);
  // Which are in use is not counted, because that would be counted at each use.
  constexpr std::size_t many = 64;
  constexpr std::size_t many_bytes = 1 << 20;
  if (memory_->old_ones() >= many || memory_->old_bytes() >= old_bytes_in_use_ + many_bytes) {
    memory_->free_old(copies_in_use());
    old_bytes_in_use_ = memory_->old_bytes();
  }
  on_fiber.copies.any_is_old = memory_->old_ones() != 0;
}

void objects_of_rank::forget_copy(std::uint64_t object) {
  if (copy_block* const block = memory().find(object)) make_old(block);
}

bool objects_of_rank::refresh(piece* p) {
  const bool is_refreshed = refreshed_.erase(p) != 0;
  unsigned awaited = 0;
  std::vector<copy_block*> seen;
  for (const hold* h = p->holds; h != nullptr && reinterpret_cast<std::uint64_t>(h) < p->hi;) {
    const hold read = hold_of(p, h);
    h = read.outer;
    if (read.what != hold::kind::copy) continue;
    auto* const block = static_cast<copy_block*>(read.of);
    if (block->is_good || std::find(seen.begin(), seen.end(), block) != seen.end()) continue;
    seen.push_back(block);
    // Also after a refresh: another fiber may have had a newer copy since.
    if (copy_block* const good = memory_->find(block->address);
        good != nullptr && good->bytes >= block->bytes &&
        (block->type == 0 || good->type == block->type)) {
      if (!copy_memory::are_alike(*block, *good) || good->is_object)
        bring_from(block, good->object());
      continue;
    }
    if (is_refreshed) continue;
    const call_name name{job.me, next_refreshing_++};
    refreshing_[name.number] = {p, block};
    asked_ = {block->bytes, block->type};
    if (rules().resume_on_copy(block->address, {name, false, nullptr})) {
      refreshing_.erase(name.number);
      // The object has come home, or its home has ended.
      if (rules().has_object(block->address) && is_here(block->address, block->bytes) &&
          is_noted_as(block->address, block->type))
        bring_from(block, reinterpret_cast<const void*>(block->address));
    } else {
      ++awaited;
    }
  }
  if (awaited == 0) return false;
  refreshes_[p] = awaited;
  return true;
}

void objects_of_rank::note_end_of(int rank) {
  arriving_bytes_ = 0;
  rules().note_end_of(rank);
  give_up_waiting_for(rank);
}

void fail_copies_of(int rank) {
  if (objects_here != nullptr) objects_here->note_end_of(rank);
}

void attach_copies() {
  objects_here = new objects_of_rank(cache_bytes());
  on_request(
      fixed_handler::copy_or_call, [](request& m) { objects_here->serve_copy_or_call(m); }, false);
  attach_object_messages();
  on_fiber.copies.refresh = [](piece* p) { return objects_here->refresh(p); };
}

}  // namespace sojourn::detail
