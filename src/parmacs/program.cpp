// SPDX-License-Identifier: Apache-2.0
// What takes the place of some functions of the C library in programs that `sojourn cc` links: what
// the program calls malloc is sojourn_program_malloc there, and so on. The C library itself and the
// runtime keep the library's own.
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "parmacs/private_heap.hpp"
#include "parmacs/processes.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/shared/memory.hpp"

using namespace sojourn;
using detail::program_heap;

namespace {

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
bool is_of_program(const void* p) {
  return program_heap.is_attached() && program_heap.contains(address_of(p));
}
bool is_shared(const void* p) {
  return program_heap.is_attached() && detail::addresses.in_shared(address_of(p));
}

/// Before the job begins there is only the library's.
void* allocate(std::size_t bytes, std::size_t align, bool zeroed) {
  if (program_heap.is_attached()) return program_heap.allocate(bytes, align, zeroed);
  if (align > 16) return memalign(align, bytes);
  return zeroed ? std::calloc(1, bytes) : std::malloc(bytes);
}

bool product(std::size_t count, std::size_t each, std::size_t& bytes) {
  if (!__builtin_mul_overflow(count, each, &bytes)) return true;
  errno = ENOMEM;
  return false;
}

bool is_power_of_two(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace

extern "C" {

void* sojourn_program_malloc(std::size_t bytes) { return allocate(bytes, 16, false); }

void* sojourn_program_calloc(std::size_t count, std::size_t each) {
  std::size_t bytes;
  return product(count, each, bytes) ? allocate(bytes, 16, true) : nullptr;
}

void sojourn_program_free(void* p) {
  if (p == nullptr) return;
  const int saved = errno;
  if (is_of_program(p)) {
    program_heap.free(p);
  } else if (is_shared(p)) {
    shared::free(p);
  } else {
    std::free(p);
  }
  errno = saved;
}
void sojourn_program_cfree(void* p) { sojourn_program_free(p); }

void* sojourn_program_realloc(void* p, std::size_t bytes) {
  if (p == nullptr) return sojourn_program_malloc(bytes);
  if (is_shared(p))
    detail::die(
        "realloc() of %p, which is shared memory (G_MALLOC): allocate a new block there and "
        "copy",
        p);
  if (!is_of_program(p)) return std::realloc(p, bytes);
  if (bytes == 0) {
    sojourn_program_free(p);
    return nullptr;
  }
  const std::size_t had = program_heap.bytes_of(p);
  if (bytes <= had && bytes >= had / 2 && program_heap.rank_of(address_of(p)) == detail::job.me)
    return p;
  void* q = sojourn_program_malloc(bytes);
  if (q == nullptr) return nullptr;
  std::memcpy(q, p, had < bytes ? had : bytes);
  sojourn_program_free(p);
  return q;
}

void* sojourn_program_reallocarray(void* p, std::size_t count, std::size_t each) {
  std::size_t bytes;
  return product(count, each, bytes) ? sojourn_program_realloc(p, bytes) : nullptr;
}

int sojourn_program_posix_memalign(void** p, std::size_t align, std::size_t bytes) {
  if (!is_power_of_two(align) || align % sizeof(void*) != 0) return EINVAL;
  const int saved = errno;
  void* got = allocate(bytes, align, false);
  errno = saved;
  if (got == nullptr) return ENOMEM;
  *p = got;
  return 0;
}
void* sojourn_program_memalign(std::size_t align, std::size_t bytes) {
  if (is_power_of_two(align)) return allocate(bytes, align, false);
  errno = EINVAL;
  return nullptr;
}
void* sojourn_program_aligned_alloc(std::size_t align, std::size_t bytes) {
  return sojourn_program_memalign(align, bytes);
}
void* sojourn_program_valloc(std::size_t bytes) { return allocate(bytes, 4096, false); }
void* sojourn_program_pvalloc(std::size_t bytes) {
  return allocate((bytes + 4095) / 4096 * 4096, 4096, false);
}

std::size_t sojourn_program_malloc_usable_size(void* p) {
  if (p == nullptr) return 0;
  return is_of_program(p) ? program_heap.bytes_of(p) : malloc_usable_size(p);
}

char* sojourn_program_strdup(const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  void* p = sojourn_program_malloc(bytes);
  return static_cast<char*>(p == nullptr ? p : std::memcpy(p, text, bytes));
}
char* sojourn_program___strdup(const char* text) { return sojourn_program_strdup(text); }
char* sojourn_program_strndup(const char* text, std::size_t most) {
  const std::size_t length = strnlen(text, most);
  auto* p = static_cast<char*>(sojourn_program_malloc(length + 1));
  if (p == nullptr) return nullptr;
  std::memcpy(p, text, length);
  p[length] = 0;
  return p;
}

int sojourn_program_vasprintf(char** to, const char* format, std::va_list values) {
  std::va_list again;
  va_copy(again, values);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length < 0) return length;
  auto* p = static_cast<char*>(sojourn_program_malloc(static_cast<std::size_t>(length) + 1));
  if (p == nullptr) return -1;
  *to = p;
  return std::vsnprintf(p, static_cast<std::size_t>(length) + 1, format, values);
}
int sojourn_program_asprintf(char** to, const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length = sojourn_program_vasprintf(to, format, values);
  va_end(values);
  return length;
}

int sojourn_program___vasprintf_chk(char** to, int, const char* format, std::va_list values) {
  return sojourn_program_vasprintf(to, format, values);
}
int sojourn_program___asprintf_chk(char** to, int, const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const int length = sojourn_program_vasprintf(to, format, values);
  va_end(values);
  return length;
}

[[noreturn]] void sojourn_program_exit(int status) { detail::end_process(status); }

/// As exit, but what is buffered of standard output is still written: the process whose buffer it
/// is goes on as a rank. A child of fork() is no process of the job, and ends as it asks.
[[noreturn]] void sojourn_program__exit(int status) {
  if (detail::is_forked_child()) ::_exit(status);
  detail::end_process(status);
}

[[noreturn]] void sojourn_program__Exit(int status) { sojourn_program__exit(status); }

/// A program that is linked statically loads nothing (--wrap=dlopen). The library's own function
/// would have the linker warn of that.
void* __wrap_dlopen(const char*, int) { return nullptr; }

}  // extern "C"
