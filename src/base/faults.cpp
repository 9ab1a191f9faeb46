// SPDX-License-Identifier: Apache-2.0
#include "base/faults.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/check.hpp"
#include "base/owned_signals.hpp"

namespace sojourn::detail {

namespace {

/// An entry of the table. Faults are looked up while other threads write: meanwhile the version is
/// odd, and afterwards it is another one than before. A reader that sees such a change skips the
/// entry. It misses nothing, because a range is accessed only between its registration and its
/// removal.
struct range {
  std::atomic<std::uint32_t> version;
  std::atomic<std::uint64_t> low;
  std::atomic<std::uint64_t> high;  ///< Equal to `low`: the entry is free.
  std::atomic<fault_handler> handler;
  std::atomic<void*> data;
};

range table[fault_ranges_max];
std::mutex writers;

void write(range& r, std::uint64_t low, std::uint64_t high, fault_handler handler, void* data) {
  const std::uint32_t version = r.version.load(std::memory_order_relaxed);
  r.version.store(version + 1, std::memory_order_relaxed);
  // Stored with release: a reader that sees one of these values sees the odd version, too.
  r.low.store(low, std::memory_order_release);
  r.high.store(high, std::memory_order_release);
  r.handler.store(handler, std::memory_order_release);
  r.data.store(data, std::memory_order_release);
  r.version.store(version + 2, std::memory_order_release);
}

/// Calls the handler of the address, if there is one. Returns whether it has repaired the fault.
bool is_mended(const page_fault& fault) {
  for (const range& r : table) {
    const std::uint32_t version = r.version.load(std::memory_order_acquire);
    const std::uint64_t low = r.low.load(std::memory_order_acquire);
    const std::uint64_t high = r.high.load(std::memory_order_acquire);
    if (fault.address - low >= high - low) continue;
    const fault_handler handler = r.handler.load(std::memory_order_acquire);
    void* data = r.data.load(std::memory_order_acquire);
    if (version % 2 != 0 || r.version.load(std::memory_order_relaxed) != version) continue;
    return handler(fault, data);
  }
  return false;
}

/// True when an access to an address has faulted. False for addresses that no process can have (the
/// kernel does not tell them), for memory that has failed, and for signals that were sent.
bool has_address(int signal, const siginfo_t& info) {
  return signal == SIGSEGV ? info.si_code == SEGV_MAPERR || info.si_code == SEGV_ACCERR
                           : info.si_code == BUS_ADRERR;
}

struct attempt {
  sigjmp_buf start;
  attempt* outer;
};
thread_local constinit attempt* attempted = nullptr;

std::atomic<signal_handler> reporter_of_others;

void by_default(int signal, const siginfo_t& info) {
  disown_signal(signal);
  // An instruction that has faulted faults again. A signal that was sent must be sent again.
  if (info.si_code <= 0) raise(signal);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const program_action program = take_program_action(signal);
  switch (program.wants) {
    case program_wants::handles:
      return call_program_handler(program.how, signal, info, context);
    case program_wants::ignores:
      // A signal that the kernel sends for an instruction cannot be ignored.
      if (info->si_code > 0) by_default(signal, *info);
      return;
    case program_wants::nothing:
      // The reporter ends the process, or passes a signal that was sent to the thread that it was
      // meant for.
      if (signal_handler reporter = reporter_of_others.load())
        return reporter(signal, info, context);
      return by_default(signal, *info);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (info->si_code > 0 && attempted != nullptr) siglongjmp(attempted->start, 1);
  if (has_address(signal, *info)) {
    const int saved = errno;
    const bool mended =
        is_mended({reinterpret_cast<std::uint64_t>(info->si_addr), access_of(context), context});
    errno = saved;
    if (mended) return;
  }
  pass_on(signal, info, context);
}

/// Handles the two signals from now on. `also_of_program`: even if the program has a handler.
void own_signals(bool also_of_program) {
  for (int signal : {SIGSEGV, SIGBUS}) own_signal(signal, on_fault, also_of_program);
}

}  // namespace

bool add_fault_range(std::uint64_t low, std::uint64_t high, fault_handler handler, void* data) {
  SOJOURN_CHECK(low < high, "the range begins at %llx and ends at %llx",
                static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
  std::lock_guard lock(writers);
  range* free = nullptr;
  for (range& r : table) {
    const std::uint64_t its_low = r.low.load();
    const std::uint64_t its_high = r.high.load();
    if (its_low == its_high) {
      free = &r;
    } else if (low < its_high && its_low < high) {
      return false;
    }
  }
  if (free == nullptr) return false;
  own_signals(true);
  write(*free, low, high, handler, data);
  return true;
}

void remove_fault_range(std::uint64_t low) {
  std::lock_guard lock(writers);
  for (range& r : table) {
    if (r.low.load() != low || r.high.load() == low) continue;
    return write(r, 0, 0, nullptr, nullptr);
  }
  SOJOURN_CHECK(false, "no range of faults begins at %llx", static_cast<unsigned long long>(low));
}

void report_other_faults(void (*reporter)(int signal, siginfo_t* info, void* context)) {
  reporter_of_others.store(reporter);
  own_signals(false);
}

bool survives_faults(void (*function)(void*), void* argument) {
  attempt mine;
  mine.outer = attempted;
  if (sigsetjmp(mine.start, 1) != 0) {
    attempted = mine.outer;
    return false;
  }
  attempted = &mine;
  function(argument);
  attempted = mine.outer;
  return true;
}

fault_access access_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  constexpr greg_t write_bit = 2;
  return (machine.gregs[REG_ERR] & write_bit) != 0 ? fault_access::write : fault_access::read;
#elif defined(__aarch64__)
  // Records follow the registers; the record of the exception has the register ESR_EL1.
  constexpr std::uint64_t write_bit = 1u << 6;
  const unsigned char* at = machine.__reserved;
  for (_aarch64_ctx head;; at += head.size) {
    std::memcpy(&head, at, sizeof head);
    if (head.magic == 0 || head.size == 0) return fault_access::unknown;
    if (head.magic != ESR_MAGIC) continue;
    esr_context exception;
    std::memcpy(&exception, at, sizeof exception);
    return (exception.esr & write_bit) != 0 ? fault_access::write : fault_access::read;
  }
#endif
}

}  // namespace sojourn::detail
