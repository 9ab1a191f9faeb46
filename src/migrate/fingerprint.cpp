// SPDX-License-Identifier: Apache-2.0
#include "migrate/fingerprint.hpp"

#include <gnu/libc-version.h>
#include <link.h>
#include <sys/auxv.h>

#include <cerrno>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "message/dispatcher.hpp"
#include "migrate/gate.hpp"
#include "rpc/exceptions.hpp"
#include "sojourn/detail/collective_plan.hpp"
#include "sojourn/detail/named.hpp"
#include "sojourn/detail/running.hpp"

extern "C" char __executable_start;
extern "C" char etext;

namespace sojourn::detail {

namespace {

void mix(std::uint64_t& hash, const void* bytes, std::size_t size) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ p[i]) * 0x100000001b3u;  // FNV-1a
}

bool is_kernels(const dl_phdr_info& object) {
  const unsigned long kernels = getauxval(AT_SYSINFO_EHDR);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && kernels - (object.dlpi_addr + part.p_vaddr) < part.p_memsz)
      return true;
  }
  return false;
}

/// Mixes in the notes of an object, which hold its build id. The executable, which is the first
/// object, has a hash of its own; the libraries share one. The kernel's own object (vDSO) is left
/// out: it differs between kernels, and no stack has addresses of it while its fiber waits.
int mix_notes(dl_phdr_info* object, std::size_t, void* to) {
  auto& found = *static_cast<fingerprints*>(to);
  const bool is_executable = object->dlpi_name == nullptr || object->dlpi_name[0] == 0;
  if (is_kernels(*object)) return 0;
  std::uint64_t& hash =
      is_executable ? found.image : found.stack_needs[static_cast<int>(stack_need::libraries)];
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_NOTE) continue;
    mix(hash, reinterpret_cast<const void*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
        object->dlpi_phdr[i].p_memsz);
  }
  return 0;
}

/// A bit for each feature by which the C library, or functions with target_clones, may choose code.
std::uint64_t processor_features() {
  std::uint64_t bits = 0;
#if defined(__x86_64__)
  const bool has[] = {
      __builtin_cpu_supports("sse3") != 0,         __builtin_cpu_supports("ssse3") != 0,
      __builtin_cpu_supports("sse4.1") != 0,       __builtin_cpu_supports("sse4.2") != 0,
      __builtin_cpu_supports("popcnt") != 0,       __builtin_cpu_supports("avx") != 0,
      __builtin_cpu_supports("avx2") != 0,         __builtin_cpu_supports("fma") != 0,
      __builtin_cpu_supports("bmi") != 0,          __builtin_cpu_supports("bmi2") != 0,
      __builtin_cpu_supports("avx512f") != 0,      __builtin_cpu_supports("avx512vl") != 0,
      __builtin_cpu_supports("avx512bw") != 0,     __builtin_cpu_supports("avx512dq") != 0,
      __builtin_cpu_supports("avx512cd") != 0,     __builtin_cpu_supports("avx512vbmi") != 0,
      __builtin_cpu_supports("avx512vbmi2") != 0,  __builtin_cpu_supports("avx512vnni") != 0,
      __builtin_cpu_supports("avx512bitalg") != 0, __builtin_cpu_supports("gfni") != 0,
      __builtin_cpu_supports("vpclmulqdq") != 0,
  };
  for (const bool feature : has) bits = bits << 1 | (feature ? 1 : 0);
#else
  bits = getauxval(AT_HWCAP) ^ getauxval(AT_HWCAP2) << 32;
#endif
  return bits;
}

constexpr std::uint64_t basis = 0xcbf29ce484222325u;

/// Everything except the address of thread-local variables, which differs between threads.
fingerprints of_objects() {
  fingerprints found{basis, {basis, basis, processor_features()}};
  dl_iterate_phdr(mix_notes, &found);
  const void* code[] = {&__executable_start, &etext};
  mix(found.image, code, sizeof code);
  const char* version = gnu_get_libc_version();
  mix(found.stack_needs[static_cast<int>(stack_need::libraries)], version, std::strlen(version));
  return found;
}

fingerprints compute() {
  fingerprints found = of_objects();
  const void* variable = &errno;
  mix(found.stack_needs[static_cast<int>(stack_need::thread_locals)], &variable, sizeof variable);
  return found;
}

}  // namespace

std::uint64_t image_fingerprint() { return of_objects().image; }

const fingerprints& fingerprint() {
  static const fingerprints at_the_start = compute();
  return at_the_start;
}

std::uint64_t fingerprints::all() const {
  std::uint64_t hash = image;
  mix(hash, stack_needs, sizeof stack_needs);
  return hash;
}

std::string what_differs(const std::uint64_t (&a)[stack_need_count],
                         const std::uint64_t (&b)[stack_need_count]) {
  constexpr const char* names[] = {"other libraries", "thread-local variables elsewhere",
                                   "a processor with other features"};
  for (std::size_t i = 0; i < stack_need_count; ++i) {
    if (a[i] != b[i]) return names[i];
  }
  return "";
}

std::uint64_t wire_fingerprint() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  // Leaves out the layout of the region and of the segment, which the ranks have compared before.
  std::size_t words[] = {static_cast<std::size_t>(runtime_message::count_),
                         static_cast<std::size_t>(fixed_handler::count_),
                         static_cast<std::size_t>(collective::end_of_program),
                         sizeof(scope_ticket),
                         sizeof(encoded_exception),
                         sizeof(stay_reason),
                         sizeof(named_header),
                         checked()};
  mix(hash, words, sizeof words);
  return hash;
}

}  // namespace sojourn::detail
