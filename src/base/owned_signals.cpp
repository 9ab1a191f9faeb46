// SPDX-License-Identifier: Apache-2.0
#include "base/owned_signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "sojourn/detail/asan.hpp"

// The C library's own name for sigaction(). Calls of the program use another name.
extern "C" int __sigaction(int signal, const struct sigaction* action,
                           struct sigaction* before) noexcept;

namespace sojourn::detail {

namespace {

#if SOJOURN_ASAN
constexpr auto system_sigaction = sigaction;
#else
constexpr auto system_sigaction = __sigaction;
#endif

struct owned_signal {
  const int number;
  bool ours = false;
  struct sigaction of_program{};  ///< If it is ours: what the program has installed.
};
owned_signal owned[] = {{SIGSEGV}, {SIGBUS}};

owned_signal* find(int signal) {
  for (owned_signal& s : owned) {
    if (s.number == signal) return &s;
  }
  return nullptr;
}

/// Does what sigprocmask() does, for owned signals, too.
int system_mask(int how, const sigset_t* set, sigset_t* before) {
  return static_cast<int>(syscall(SYS_rt_sigprocmask, how, set, before, _NSIG / 8));
}

/// sigaction() may be called anywhere, even in a handler that has interrupted another call of it.
std::atomic_flag in_use;
class exclusive_use {
 public:
  exclusive_use() {
    sigset_t all;
    sigfillset(&all);
    system_mask(SIG_BLOCK, &all, &before_);
    while (in_use.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~exclusive_use() {
    in_use.clear(std::memory_order_release);
    system_mask(SIG_SETMASK, &before_, nullptr);
  }
  exclusive_use(const exclusive_use&) = delete;
  exclusive_use& operator=(const exclusive_use&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

bool own_signal(int signal, signal_handler handler, bool also_of_program) {
  owned_signal& s = *find(signal);
  struct sigaction ours{};
  ours.sa_sigaction = handler;
  // No signal is blocked, because the handler may fault before it returns, or never return.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  const exclusive_use alone;
  if (s.ours) return true;
  if (system_sigaction(signal, nullptr, &s.of_program) != 0) return false;
  if (s.of_program.sa_handler != SIG_DFL && !also_of_program) return false;
  return s.ours = system_sigaction(signal, &ours, nullptr) == 0;
}

program_action take_program_action(int signal) {
  owned_signal& s = *find(signal);
  const exclusive_use alone;
  if (s.of_program.sa_handler == SIG_DFL) return {program_wants::nothing, {}};
  if (s.of_program.sa_handler == SIG_IGN) return {program_wants::ignores, {}};
  const program_action taken{program_wants::handles, s.of_program};
  if ((taken.how.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) s.of_program = {};
  return taken;
}

void call_program_handler(const struct sigaction& how, int signal, siginfo_t* info, void* context) {
  sigset_t blocked = how.sa_mask;
  if ((how.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, signal);
  system_mask(SIG_BLOCK, &blocked, nullptr);
  if ((how.sa_flags & SA_SIGINFO) != 0) return how.sa_sigaction(signal, info, context);
  how.sa_handler(signal);
}

void disown_signal(int signal) {
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  system_sigaction(signal, &by_default, nullptr);
}

#if !SOJOURN_ASAN

namespace {

/// Those signals of `set` that the program may block.
sigset_t without_owned(sigset_t set) {
  for (const owned_signal& s : owned) {
    if (s.ours) sigdelset(&set, s.number);
  }
  return set;
}

/// Those signals of `set` that the program's handlers may block. All that may ever be owned are
/// left out, because a handler may be installed long before they are owned.
sigset_t without_any(sigset_t set) {
  for (const owned_signal& s : owned) sigdelset(&set, s.number);
  return set;
}

/// Does what sigaction() does.
int change_action(int signal, const struct sigaction* action, struct sigaction* before) {
  owned_signal* s = find(signal);
  // Copied before the exclusive use begins, because an access to memory of the program may fault.
  struct sigaction wanted{};
  if (action != nullptr) wanted = *action;
  if (s == nullptr) {
    wanted.sa_mask = without_any(wanted.sa_mask);
    return system_sigaction(signal, action != nullptr ? &wanted : nullptr, before);
  }
  struct sigaction old{};
  int result = 0;
  {
    const exclusive_use alone;
    if (s->ours) {
      old = s->of_program;
      if (action != nullptr) s->of_program = wanted;
    } else {
      result = system_sigaction(signal, action != nullptr ? &wanted : nullptr, &old);
    }
  }
  if (result == 0 && before != nullptr) *before = old;
  return result;
}

/// Does what signal() does, with these flags.
sighandler_t change_handler(int signal, sighandler_t handler, int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  struct sigaction before;
  return change_action(signal, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

/// Does what sigprocmask() does.
int change_mask(int how, const sigset_t* set, sigset_t* before) {
  if (set == nullptr || how == SIG_UNBLOCK) return system_mask(how, set, before);
  sigset_t wanted = without_owned(*set);
  // The threads of the C library reach each other by these two signals.
  for (unsigned s : {32u, 33u}) wanted.__val[0] &= ~(std::uint64_t{1} << (s - 1));
  return system_mask(how, &wanted, before);
}

}  // namespace

#endif

}  // namespace sojourn::detail

#if !SOJOURN_ASAN

// Libraries call these functions, too: the dynamic linker prefers them to those of the C library,
// which have the same names. They are weak, because a program may define its own.

extern "C" [[gnu::weak]] int sigaction(int number, const struct sigaction* action,
                                       struct sigaction* before) noexcept {
  return sojourn::detail::change_action(number, action, before);
}

extern "C" [[gnu::weak]] sighandler_t signal(int number, sighandler_t handler) noexcept {
  using namespace sojourn::detail;
  // For other signals, signal() must heed siginterrupt(), as ssignal() does.
  if (find(number) == nullptr) return ssignal(number, handler);
  return change_handler(number, handler, SA_RESTART);
}

/// The name of signal() in a C program that asks for System V.
extern "C" [[gnu::weak]] sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return sojourn::detail::change_handler(number, handler,
                                         static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}

extern "C" [[gnu::weak]] int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return sojourn::detail::change_mask(how, set, before);
}

extern "C" [[gnu::weak]] int pthread_sigmask(int how, const sigset_t* set,
                                             sigset_t* before) noexcept {
  const int unchanged = errno;
  const int result = sojourn::detail::change_mask(how, set, before) == 0 ? 0 : errno;
  errno = unchanged;
  return result;
}

#endif
