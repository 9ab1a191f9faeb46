// SPDX-License-Identifier: Apache-2.0
#include "shared/page_fault.hpp"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <utility>

#include "base/check.hpp"
#include "base/faults.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "frames/interrupted.hpp"
#include "memory/address_map.hpp"
#include "shared/fault_frame.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail::pages {

namespace {

page_fault_hooks hooks;
pthread_t worker;
// Arguments for sojourn_page_fault, which is called next.
std::uint64_t registers_at_fault;
std::uint64_t code_at_fault;
bool is_child_of_fork = false;

/// What the runtime may need of the stack below the frame of a fault.
constexpr std::size_t runtime_bytes = 8 << 10;

/// While this lives, the running piece neither leaves its rank nor is cut at a mark. A cut would
/// need the marks to be right, but the faulting instruction is anywhere: the compiler may have
/// moved it between the store that opens or closes a mark and the marked call. (Nor can the frames
/// be walked with the tables of unwind_tables.hpp, which know calls only.)
class whole_piece_waits {
 public:
  whole_piece_waits() : stays_{running.holds}, had_forks_(may_have_forks()) {
    running.holds = &stays_;
    youngest_ = std::exchange(running.youngest, nullptr);
    running.forks_before = counts.forks;
  }
  ~whole_piece_waits() {
    running.forks_before = counts.forks - (had_forks_ ? 1 : 0);
    running.youngest = youngest_;
    running.holds = stays_.outer;
  }
  whole_piece_waits(const whole_piece_waits&) = delete;
  whole_piece_waits& operator=(const whole_piece_waits&) = delete;

 private:
  hold stays_;
  mark* youngest_;
  bool had_forks_;
};

bool is_on_signal_stack(std::uint64_t sp) {
  stack_t stack;
  return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0 &&
         sp - reinterpret_cast<std::uint64_t>(stack.ss_sp) < stack.ss_size;
}

/// Says why the fault cannot be waited for. Requires: the stack pointer is not in the slot of the
/// running fiber.
void say_where(std::uint64_t sp) {
  if (is_on_signal_stack(sp)) {
    say_last_words(
        "a signal handler accessed shared memory, and on the signal stack nothing can wait for a "
        "page: have the handler set a flag, and access the memory where the flag is read");
  } else if (sp - handover.scheduler_low < handover.scheduler_high - handover.scheduler_low) {
    on_fiber.waits_outside();  // a handler that promised not to wait is named, and ends the rank
    say_last_words(
        "the runtime itself accessed a page of shared memory that is not here: a call or a message "
        "must not refer to shared memory; copy it first");
  } else {
    say_last_words(
        "shared memory was accessed on a stack that is no fiber's, where nothing can wait for a "
        "page: access it in a fiber of Sojourn");
  }
}

void say_overflow(std::uint32_t slot, std::uint64_t sp, std::size_t needed) {
  say_last_words(
      "stack overflow: an access to shared memory waits on the stack of its fiber, where it needs "
      "%zu KiB, and %llu KiB of %llu are left; use less of it (recursion, large local arrays), or "
      "%s",
      (needed + 1023) >> 10,
      static_cast<unsigned long long>((sp - slots.low(slot) - stack_slots::guard_bytes) >> 10),
      static_cast<unsigned long long>((slots.high(slot) - slots.low(slot)) >> 10),
      slots.how_to_enlarge(slot));
}

/// True when the fault can be waited for on the interrupted stack. Otherwise says why not.
bool can_wait(std::uint64_t address, const void* context) {
  if (is_child_of_fork) [[unlikely]] {
    say_last_words(
        "a process that was made by fork() accessed shared memory, which only its parent has: copy "
        "what it needs before fork()");
    return false;
  }
  if (pthread_equal(worker, pthread_self()) == 0) [[unlikely]] {
    if (is_job_over()) {
      say_last_words(
          "shared memory was accessed after run(), when the job has ended: copy in the function "
          "that "
          "is passed to run() what is needed later");
      return false;
    }
    say_last_words(
        "a thread that is not Sojourn's accessed shared memory, and only fibers can wait for a "
        "page: have a fiber copy it");
    return false;
  }
  if (!hooks.is_allocated(address)) [[unlikely]] {
    say_last_words("an access to shared memory at an address that was never allocated, or is free");
    return false;
  }
  const std::uint64_t sp = interrupted_at(context).sp;
  const piece* p = running_piece();
  const std::uint64_t low = p != nullptr ? slots.low(p->slot) + stack_slots::guard_bytes : 0;
  if (p == nullptr || sp < low || sp > slots.high(p->slot)) [[unlikely]] {
    say_where(sp);
    return false;
  }
  const std::size_t needed = fault_frame_bytes(context) + runtime_bytes;
  if (sp - low < needed) [[unlikely]] {
    say_overflow(p->slot, sp, needed);
    return false;
  }
  return true;
}

bool on_fault(const page_fault& fault, void*) {
  if (!can_wait(fault.address, fault.context)) return false;
  registers_at_fault = interrupted_registers(fault.context);
  code_at_fault = interrupted_at(fault.context).pc;
  // If the processor does not tell which it is, the access counts as a store.
  call_on_interrupted_stack(fault.context, fault.address, fault.access != fault_access::read);
  return true;
}

/// The runtime's view allows every access, so a fault there means that the system has no memory for
/// the page.
bool on_fault_of_runtime(const page_fault&, void*) {
  say_last_words(
      "out of memory: the system has no page for shared memory: use less of it, or give the job "
      "more memory");
  return false;
}

}  // namespace

void attach_page_faults(const page_fault_hooks& of_job) {
  prepare_fault_frames();
  hooks = of_job;
  worker = pthread_self();
  [[maybe_unused]] static const int told =
      pthread_atfork(nullptr, nullptr, [] { is_child_of_fork = true; });
  const std::uint64_t begin = addresses.shared;
  const std::uint64_t views = addresses.shared_bytes();
  if (add_fault_range(begin, begin + views, on_fault, nullptr)) {
    if (add_fault_range(begin + views, begin + 2 * views, on_fault_of_runtime, nullptr)) return;
    remove_fault_range(begin);
  }
  throw error(
      "the faults of shared memory cannot be handled: other parts of the program have registered "
      "too many ranges");
}

void detach_page_faults() {
  remove_fault_range(addresses.shared);
  remove_fault_range(addresses.shared + addresses.shared_bytes());
}

}  // namespace sojourn::detail::pages

// Saves `errno`: it belongs to the thread, whose other fibers run meanwhile.
void sojourn_page_fault(std::uint64_t address, bool store) noexcept {
  using namespace sojourn::detail::pages;
  const int saved = errno;
  const std::uint64_t registers = registers_at_fault;
  const std::uint64_t code = code_at_fault;
  {
    const whole_piece_waits whole;
    hooks.on_page_fault(address, store, registers, code);
  }
  errno = saved;
}
