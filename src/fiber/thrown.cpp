// SPDX-License-Identifier: Apache-2.0
#include "fiber/thrown.hpp"

#include <array>
#include <cstddef>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "frames/symbols.hpp"
#include "frames/walk.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/thrown.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

/// The typeinfo of thrown_past, which a search for a handler asks. Nothing else looks at it.
class type_of_thrown_past : public std::type_info {
 public:
  type_of_thrown_past() : std::type_info("N7sojourn6detail11thrown_pastE") {}
  bool __do_catch(const std::type_info* thrown, void** object, unsigned outer) const override;
};
extern const type_of_thrown_past asked_in_passing asm("_ZTIN7sojourn6detail11thrown_pastE");
const type_of_thrown_past asked_in_passing;

namespace {

// Bounds the walk: for each exception that leaves a child, it would otherwise walk through the
// frames of all ancestors, too.
constexpr std::uint32_t walk_max = 128;

struct note {
  const void* object = nullptr;
  const std::type_info* type = nullptr;
  thrown_frames from;
};

/// About the exception for which a handler is being looked for.
note passing;
/// About the exceptions that were caught last. When an exception object is destroyed, its note
/// stays; the next object at its address replaces it.
std::array<note, 16> notes;
std::size_t next_note = 0;

/// An exception_ptr is the object's address (Itanium C++ ABI, as libstdc++ implements it).
const void* object_of(const std::exception_ptr& exception) {
  return *reinterpret_cast<const void* const*>(&exception);
}

/// True when the object was thrown again by way of an exception_ptr: the exception that is being
/// handled then has another header than the object's own.
bool was_rethrown(const void* object) {
  const auto before_header = [](const void* of) {
    return static_cast<const char*>(of) - static_cast<const char*>(running.exceptions->caught);
  };
  static const std::ptrdiff_t own = [&] {
    try {
      throw 0;
    } catch (...) {
      return before_header(object_of(std::current_exception()));
    }
  }();
  return before_header(object) != own;
}

note* find(const std::exception_ptr& exception) {
  const void* object = object_of(exception);
  for (note& n : notes) {
    if (n.object == object && *n.type == *exception.__cxa_exception_type()) return &n;
  }
  return nullptr;
}

void keep(const std::exception_ptr& exception, const thrown_frames& from) {
  note* n = find(exception);
  if (n == nullptr) n = &notes[next_note++ % notes.size()];
  *n = {object_of(exception), exception.__cxa_exception_type(), from};
}

}  // namespace

void note_passing(const std::type_info& thrown, void* object) {
  passing.object = nullptr;
  if (thrown.__is_pointer_p()) return;  // `object` is what the pointer points to
  passing.object = object;
  passing.from = {};
  passing.from.rank = job.me;
  const piece* p = running_piece();
  // From here on frames are not on this rank. (Checked mode: see frames_below.)
  const std::uint64_t stop = p != nullptr ? p->hi - 16 : ~std::uint64_t{0};
  walk_frames({}, [stop](const walked_frame& frame) {
    passing.from.add(frame.code);
    return frame.low < stop && passing.from.in_all < walk_max;
  });
}

bool type_of_thrown_past::__do_catch(const std::type_info* thrown, void** object, unsigned) const {
  note_passing(*thrown, *object);
  return false;
}

std::exception_ptr caught_past() {
  std::exception_ptr caught = std::current_exception();
  const void* object = object_of(caught);
  // A foreign exception has no object.
  if (object == nullptr || passing.object != object) return caught;
  passing.object = nullptr;
  // If the exception was thrown again, keeps the frames from which it was thrown first, which say
  // more.
  if (find(caught) == nullptr || !was_rethrown(object)) keep(caught, passing.from);
  return caught;
}

const thrown_frames* thrown_from(const std::exception_ptr& exception) {
  const note* n = find(exception);
  return n != nullptr ? &n->from : nullptr;
}

void note_thrown_from(const std::exception_ptr& exception, const thrown_frames& frames) {
  keep(exception, frames);
}

const thrown_frames* rethrown_from(const std::exception_ptr& exception) {
  if (running.exceptions == nullptr || running.exceptions->caught == nullptr) return nullptr;
  return was_rethrown(object_of(exception)) ? thrown_from(exception) : nullptr;
}

std::string text_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const remote_exception& e) {
    return e.type_name() + ": " + e.what();
  } catch (const std::exception& e) {
    return demangle_type(typeid(e).name()) + ": " + e.what();
  } catch (...) {
    return demangle_type(exception.__cxa_exception_type()->name());
  }
}

void nobody_takes(const std::exception_ptr& exception, const char* left) {
  try {
    std::rethrow_exception(exception);
  } catch (const rank_lost&) {
    std::terminate();  // without a report: the launcher reports the lost rank
  } catch (...) {
  }
  std::string where;
  if (const thrown_frames* from = thrown_from(exception)) {
    if (from->rank != job.me) where = format(" on rank %d", from->rank);
    last_words_are_of(*from, true);
  }
  die("an exception left %s%s: %s", left, where.c_str(), text_of(exception).c_str());
}

}  // namespace sojourn::detail
