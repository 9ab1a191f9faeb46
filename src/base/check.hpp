// SPDX-License-Identifier: Apache-2.0
// The ground floor: checks, clock, counters, names of addresses. All that it knows of ranks is
// their numbers.
#pragma once

#include <string>

#include "sojourn/errors.hpp"

namespace sojourn::detail {

/// Reports a bug in Sojourn or in its caller and ends the process by SIGABRT.
[[noreturn, gnu::format(printf, 4, 5)]] void check_failed(const char* file, int line,
                                                          const char* condition, const char* format,
                                                          ...);

/// printf into a std::string: the core has no formatting library.
[[gnu::format(printf, 1, 2)]] std::string format(const char* format, ...);

/// Prints one sentence on stderr, with the rank's number when there are several, and ends the
/// process.
[[noreturn, gnu::format(printf, 1, 2)]] void die(const char* format, ...);

/// For a signal handler that leaves a fault to be reported: the report says this, and not what it
/// would find out itself. Also prints it, as die() does.
[[gnu::format(printf, 1, 2)]] void say_last_words(const char* format, ...);

/// The job has begun, or has ended, for this process.
void note_job_begins();
void note_job_ends();
bool is_in_job();
bool is_job_over();
/// Throws an error: somebody asked for `what` (such as "a call") before run() or after it, or in a
/// process that the rank has made by fork().
[[noreturn]] void refuse_outside_job(const char* what);

/// To be called in the child, after fork(): from now on die() prints what it says.
void note_forked_child();
bool in_forked_child();
/// Ends the process if it is such a child; otherwise returns.
void refuse_wait_of_forked_child();

/// `elsewhere`: others report the last words, so the functions above do not print them.
void last_words_are_reported(bool elsewhere);

/// The last words of this process: set by check_failed, die, say_last_words and uncaught
/// exceptions, read by the crash handler. Never null.
const char* last_words();

}  // namespace sojourn::detail

/// Checked in every build. The message (printf style) should print the values and say what to do.
#define SOJOURN_CHECK(condition, ...)                                               \
  do {                                                                              \
    if (!(condition)) [[unlikely]]                                                  \
      ::sojourn::detail::check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
  } while (false)
