// SPDX-License-Identifier: Apache-2.0
#include "rpc/functions.hpp"

#include <link.h>

#include <cstdint>
#include <cstring>

#include "base/check.hpp"
#include "sojourn/detail/wire.hpp"

namespace sojourn::detail {

namespace {

struct table_entry {
  std::int32_t function;  // relative to the start of .eh_frame_hdr
  std::int32_t description;
};

const std::byte* header = nullptr;
const table_entry* entries = nullptr;
std::uint32_t entry_count = 0;

std::uint64_t address_of(std::uint32_t index) {
  return reinterpret_cast<std::uint64_t>(header) +
         static_cast<std::uint64_t>(std::int64_t{entries[index].function});
}

int find_header(dl_phdr_info* info, std::size_t, void*) {
  // The program itself comes first.
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
      header = reinterpret_cast<const std::byte*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  return 1;
}

// The functions that were sent lately, because a call site sends the same one again and again.
struct cached {
  std::uint64_t address;
  std::uint32_t index;
};
cached recent[64];

}  // namespace

void attach_functions() {
  dl_iterate_phdr(find_header, nullptr);
  constexpr unsigned char datarel_sdata4 = 0x3b;
  constexpr unsigned char udata4 = 0x03;
  unsigned char encodings[4] = {};
  if (header != nullptr) std::memcpy(encodings, header, sizeof encodings);
  if (encodings[0] != 1 || encodings[2] != udata4 || encodings[3] != datarel_sdata4) {
    throw error(
        "this program has no table of its functions: link it with --eh-frame-hdr, as the "
        "compiler does by default");
  }
  std::memcpy(&entry_count, header + 8, sizeof entry_count);
  entries = reinterpret_cast<const table_entry*>(header + 12);
}

std::uint32_t function_index(void (*function)()) {
  auto address = reinterpret_cast<std::uint64_t>(function);
  cached& c = recent[address / 16 % 64];
  if (c.address == address && address != 0) [[likely]]
    return c.index;
  std::uint32_t low = 0;
  std::uint32_t high = entry_count;
  while (low < high) {
    std::uint32_t middle = (low + high) / 2;
    if (address_of(middle) < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (entry_count == 0) refuse_outside_job("a call");
  if (low == entry_count || address_of(low) != address) {
    throw error(
        format("the function at 0x%llx is not part of this program, so other ranks cannot "
               "call it (is it null, or in a shared library?)",
               static_cast<unsigned long long>(address)));
  }
  c = {address, low};
  return low;
}

void (*function_at(std::uint32_t index))() {
  if (index >= entry_count) {
    throw error(
        format("a call names function %u, and this program has only %u: it does not come "
               "from this program",
               index, entry_count));
  }
  return reinterpret_cast<void (*)()>(address_of(index));
}

}  // namespace sojourn::detail
