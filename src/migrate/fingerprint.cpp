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
#include "rpc/rpc.hpp"
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

/// Mixes in the notes of an object, which hold its build id. Not those of the kernel's own object
/// (vDSO): it differs between kernels, and no stack has addresses of it while its fiber waits.
int mix_notes(dl_phdr_info* info, std::size_t, void* hash) {
  const unsigned long kernels = getauxval(AT_SYSINFO_EHDR);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && kernels - (info->dlpi_addr + part.p_vaddr) < part.p_memsz)
      return 0;
  }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    mix(*static_cast<std::uint64_t*>(hash),
        reinterpret_cast<const void*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
        info->dlpi_phdr[i].p_memsz);
  }
  return 0;
}

std::uint64_t compute() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  dl_iterate_phdr(mix_notes, &hash);
  const char* version = gnu_get_libc_version();
  mix(hash, version, std::strlen(version));
  const void* addresses[] = {&errno, &__executable_start, &etext};
  mix(hash, addresses, sizeof addresses);
#if defined(__x86_64__)
  // Features by which the C library may choose its functions must be the same everywhere.
  int features[] = {__builtin_cpu_supports("avx") != 0, __builtin_cpu_supports("avx2") != 0,
                    __builtin_cpu_supports("avx512f") != 0};
  mix(hash, features, sizeof features);
#endif
  return hash;
}

}  // namespace

std::uint64_t fingerprint() {
  static const std::uint64_t at_the_start = compute();
  return at_the_start;
}

std::uint64_t wire_fingerprint() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  // The layout of the region and of the segment has been compared before.
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
