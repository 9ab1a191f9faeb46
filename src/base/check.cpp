// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/cut_text.hpp"
#include "base/printable.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

char words[512];
bool reported_elsewhere = false;

void say(char* text) {
  make_printable(text);
  if (reported_elsewhere) return;
  if (job.count > 1) {
    std::fprintf(stderr, "sojourn: rank %d: %s\n", job.me, text);
  } else {
    std::fprintf(stderr, "sojourn: %s\n", text);
  }
  std::fflush(stderr);
}

}  // namespace

const char* last_words() { return words; }

void last_words_are_reported(bool elsewhere) { reported_elsewhere = elsewhere; }

std::string format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  char buffer[1024];
  const int length = std::vsnprintf(buffer, sizeof buffer, format, arguments);
  std::string text(buffer);
  if (length >= 0 && static_cast<std::size_t>(length) >= sizeof buffer) {
    text.resize(static_cast<std::size_t>(length));
    std::vsnprintf(text.data(), text.size() + 1, format, again);
  }
  va_end(again);
  va_end(arguments);
  return text;
}

void check_failed(const char* file, int line, const char* condition, const char* format, ...) {
  int used =
      std::snprintf(words, sizeof words, "check failed at %s:%d: %s: ", file, line, condition);
  if (used > 0 && static_cast<std::size_t>(used) < sizeof words) {
    va_list arguments;
    va_start(arguments, format);
    vprint_text(words + used, sizeof words - static_cast<std::size_t>(used), format, arguments);
    va_end(arguments);
  }
  say(words);
  std::abort();
}

namespace {
bool is_forked = false;
constexpr const char* forked =
    "in a process that was made by fork(): it is not the rank that made it. Call before fork(), or "
    "have it execute a program of its own";
}  // namespace

void note_forked_child() {
  is_forked = true;
  last_words_are_reported(false);
}

void refuse_wait_of_forked_child() {
  if (is_forked) die("something waits %s", forked);
}

bool in_forked_child() { return is_forked; }

namespace {
enum class job_phase { to_come, goes_on, over };
std::atomic<job_phase> phase = job_phase::to_come;
}  // namespace

void note_job_begins() { phase = job_phase::goes_on; }
void note_job_ends() { phase = job_phase::over; }
bool is_in_job() { return phase == job_phase::goes_on; }
bool is_job_over() { return phase == job_phase::over; }

void refuse_outside_job(const char* what) {
  if (is_forked) throw error(format("%s %s", what, forked));
  throw error(format(
      "%s %s; do this in the function that is passed to run()", what,
      is_job_over() ? "after run(): the job has ended" : "before run(): there is no job yet"));
}

void die(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprint_text(words, sizeof words, format, arguments);
  va_end(arguments);
  say(words);
  std::abort();
}

void say_last_words(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprint_text(words, sizeof words, format, arguments);
  va_end(arguments);
  say(words);
}

}  // namespace sojourn::detail
