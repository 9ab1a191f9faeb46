// SPDX-License-Identifier: Apache-2.0
// The ring of src/transport/shm/ring.hpp in small: the same steps of its writer and its reader over
// eight lines, with stores that become visible late and, but for what a release or a fence orders,
// in any order. Payloads are chosen to look like the header of a message that the reader may wait
// for. All orders of steps are gone through.
#include <algorithm>
#include <array>
#include <cstdint>

#include "explore.hpp"

namespace {

using u8 = std::uint8_t;

constexpr u8 lines = 8;          // capacity
constexpr u8 need_max = 2;       // capacity / 4
constexpr u8 messages = 5;       // numbers 1 to 5; none comes again
constexpr u8 told_at_least = 2;  // the reader tells how far it is from so many lines on
constexpr u8 stores_max = 5;     // that are not visible yet

/// What a wrong program leaves out.
struct program {
  bool zeroes_behind = true;  ///< Of lines that may hold a payload, before the reader looks there.
  bool looks_at_start_again = true;
  bool keeps_off_watched =
      true;  ///< A message that begins again does not cover where the reader is.
  bool fence_at_watched = true;  ///< What is written later to where the reader may still look.
  bool header_last = true;       ///< With release.
  bool room_is_looked_at = true;
};

// The first word of a line: the number of a message, as the reader takes it, and what it really is.
constexpr u8 is_payload = 0x80;
struct word {
  u8 number;   ///< As the upper half of a header's word reads.
  u8 content;  ///< A message's number; with is_payload, a line of that message's payload.
};

enum class kind : u8 { none, store, release, fence };
struct buffered {
  kind what;
  u8 line;
  word value;
};

struct writer {
  u8 number;   // of the last message
  u8 at_line;  // offset of the next message
  u8 watched;
  u8 position;  // lines written and skipped, ever
  u8 consumed_seen;
  u8 known;  // bits: lines whose first words are no payload
};
enum class look : u8 { start, next, start_again, use };
struct reader {
  look pc;
  u8 number;  // of the next message
  u8 next;
  u8 position;
  u8 untold;
  u8 at_line;  // of the message that is used
};

struct state {
  std::array<word, lines> memory;
  std::array<buffered, stores_max> stores;
  std::array<u8, messages + 1> length;  // in lines
  writer w;
  reader r;
  u8 consumed;  // as the reader has told it
};

state first_state() {
  state s{};
  s.w.known = 0xff;
  s.r.number = 1;
  return s;
}

bool store_later(state& s, const buffered& b) {
  for (buffered& free : s.stores) {
    if (free.what != kind::none) continue;
    free = b;
    return true;
  }
  return false;
}
/// Makes the i-th store visible.
void make_visible(state& s, std::size_t i) {
  if (s.stores[i].what != kind::fence) s.memory[s.stores[i].line] = s.stores[i].value;
  std::copy(s.stores.begin() + static_cast<std::ptrdiff_t>(i) + 1, s.stores.end(),
            s.stores.begin() + static_cast<std::ptrdiff_t>(i));
  s.stores.back() = {};
}
/// A release and a fence wait for all that is before them; nothing goes past a fence, or past a
/// store to the same line.
bool may_become_visible(const state& s, std::size_t i) {
  const buffered& b = s.stores[i];
  if (b.what == kind::none) return false;
  for (std::size_t before = 0; before < i; ++before) {
    if (b.what != kind::store || s.stores[before].what == kind::fence ||
        s.stores[before].line == b.line) {
      return false;
    }
  }
  return true;
}

// --- the writer ----------------------------------------------------------------------------------

bool may_begin_again(const program& p, const writer& w, u8 need) {
  return w.at_line == 0 || need <= w.at_line || !p.keeps_off_watched;
}
void begin_again(writer& w) {
  w.watched = w.at_line;
  const u8 past = w.position % lines;
  if (past != 0) w.position = static_cast<u8>(w.position + lines - past);
  w.consumed_seen = w.position;
  w.at_line = 0;
}

/// As ring_writer::reserve. False when there is no room.
bool reserve(const program& p, state& s, u8 need) {
  writer& w = s.w;
  if (w.position == w.consumed_seen && may_begin_again(p, w, need)) {
    begin_again(w);
    return true;
  }
  const u8 skipped = w.at_line + need > lines ? static_cast<u8>(lines - w.at_line) : u8{0};
  auto is_full = [&] { return w.position + skipped + need + 1 - w.consumed_seen > lines; };
  if (is_full() && p.room_is_looked_at) {
    w.consumed_seen = std::max(w.consumed_seen, s.consumed);
    if (w.position == w.consumed_seen && may_begin_again(p, w, need)) {
      begin_again(w);
      return true;
    }
    if (is_full()) return false;
  }
  if (skipped != 0) {
    w.position = static_cast<u8>(w.position + skipped);
    w.at_line = 0;
  }
  if (p.fence_at_watched && w.at_line < w.watched && w.watched < w.at_line + need)
    return store_later(s, {kind::fence, 0, {}});
  return true;
}

/// A message of `need` lines: all of its stores. Nothing that others do comes between these that
/// could not as well come before they are visible.
bool write(const program& p, state& s, u8 need, int ahead) {
  writer& w = s.w;
  if (!reserve(p, s, need)) return false;
  const u8 number = ++w.number;
  const word header{number, number};
  s.length[number] = need;
  bool fits = p.header_last || store_later(s, {kind::store, w.at_line, header});
  for (u8 i = 1; i < need; ++i) {
    const u8 line = static_cast<u8>(w.at_line + i);
    const word payload{static_cast<u8>(number + ahead), static_cast<u8>(is_payload | number)};
    fits = fits && store_later(s, {kind::store, line, payload});
    w.known &= static_cast<u8>(~(1u << line));
  }
  // keep_unlike_headers
  const u8 behind = static_cast<u8>((w.at_line + need) % lines);
  if (p.zeroes_behind && (w.known >> behind & 1) == 0) {
    fits = fits && store_later(s, {kind::store, behind, {0, 0}});
    w.known |= static_cast<u8>(1u << behind);
  }
  if (p.header_last) fits = fits && store_later(s, {kind::release, w.at_line, header});
  w.position = static_cast<u8>(w.position + need);
  w.at_line = behind;
  return fits;
}

template <class Emit>
void step_writer(const program& p, const state& s, Emit emit) {
  if (s.w.number == messages) return;
  for (u8 need = 1; need <= need_max; ++need) {
    // Its payload looks like the message before, this one, or one of the next two.
    for (int ahead : {-1, 0, 1, 2}) {
      state n = s;
      if (write(p, n, need, ahead)) emit(n, nullptr);
      if (need == 1) break;
    }
  }
}

/// The other way's messages say how many this one's reader has read.
template <class Emit>
void step_heard(const state& s, Emit emit) {
  if (s.r.number - 1 != s.w.number || s.r.pc == look::use) return;
  if (s.w.consumed_seen == s.w.position) return;
  state n = s;
  n.w.consumed_seen = n.w.position;
  emit(n, nullptr);
}

// --- the reader ----------------------------------------------------------------------------------

bool has_number(const state& s, u8 line) { return s.memory[line].number == s.r.number; }

const char* fault_in(const state& s, u8 line) {
  const u8 number = s.r.number;
  if (s.memory[line].content != number) return "what is taken for a message is none";
  for (u8 i = 1; i < s.length[number]; ++i) {
    if (s.memory[static_cast<u8>(line + i)].content != (is_payload | number))
      return "a payload is not there, or was overwritten, while its message is read";
  }
  return nullptr;
}

template <class Emit>
void step_reader(const program& p, const state& s, Emit emit) {
  state n = s;
  reader& r = n.r;
  auto found = [&](u8 line) {
    // start_again
    if (line == 0 && r.next != 0)
      r.position = static_cast<u8>((r.position + lines - 1) / lines * lines);
    r.next = r.at_line = line;
    r.pc = look::use;
    emit(n, fault_in(n, line));
  };
  switch (s.r.pc) {
    case look::start:
      if (has_number(s, 0)) return found(0);
      r.pc = look::next;
      return emit(n, nullptr);
    case look::next:
      if (!has_number(s, r.next)) {
        r.pc = look::start;
      } else if (!p.looks_at_start_again) {
        return found(r.next);
      } else {
        r.pc = look::start_again;
      }
      return emit(n, nullptr);
    case look::start_again:
      return found(has_number(s, 0) ? u8{0} : r.next);
    case look::use: {
      // consume
      const char* fault = fault_in(s, r.at_line);
      const u8 length = s.length[r.number];
      r.position = static_cast<u8>(r.position + length);
      r.untold = static_cast<u8>(r.untold + length);
      r.next = static_cast<u8>((r.next + length) % lines);
      ++r.number;
      if (r.untold >= told_at_least) {
        r.untold = 0;
        n.consumed = r.position;
      }
      r.pc = look::start;
      return emit(n, fault);
    }
  }
}
/// Before it sleeps it tells how far it is.
template <class Emit>
void step_tell(const state& s, Emit emit) {
  if (s.r.pc != look::start || s.r.untold == 0) return;
  state n = s;
  n.r.untold = 0;
  n.consumed = n.r.position;
  emit(n, nullptr);
}

models::exploration<state> explored(const program& p) {
  return models::explore(
      first_state(),
      [&](const state& s, auto emit) {
        for (std::size_t i = 0; i < stores_max; ++i) {
          if (!may_become_visible(s, i)) continue;
          state n = s;
          make_visible(n, i);
          emit(n, nullptr);
        }
        if (s.r.number > messages) return;
        step_writer(p, s, emit);
        step_heard(s, emit);
        step_reader(p, s, emit);
        step_tell(s, emit);
      },
      [](const state& s) { return s.r.number > messages ? nullptr : "neither end can go on"; });
}

}  // namespace

int main() {
  using models::holds;
  using models::is_found;
  holds("the ring", explored({}));
  program p;
  p.zeroes_behind = false;
  is_found("zeroes behind a message", explored(p));
  p = {};
  p.looks_at_start_again = false;
  is_found("the second look at the start", explored(p));
  p = {};
  p.keeps_off_watched = false;
  is_found("keeping off the line that the reader looks at", explored(p));
  p = {};
  p.fence_at_watched = false;
  is_found("the fence before that line is written to", explored(p));
  p = {};
  p.header_last = false;
  is_found("the header's being stored last", explored(p));
  p = {};
  p.room_is_looked_at = false;
  is_found("a look at how far the reader is", explored(p));
  return models::failures == 0 ? 0 : 1;
}
