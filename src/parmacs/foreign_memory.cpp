// SPDX-License-Identifier: Apache-2.0
#include "parmacs/foreign_memory.hpp"

#include "base/check.hpp"
#include "base/faults.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "parmacs/private_heap.hpp"
#include "sojourn/detail/running.hpp"

// The linker makes these.
extern "C" const char __executable_start[];
extern "C" const char _end[];

namespace sojourn::detail {

namespace {

bool on_heap_fault(const page_fault& fault, void*) {
  const int owner = program_heap.rank_of(fault.address);
  if (owner == job.me) {
    say_last_words(
        "an access beyond what this process has from malloc(): is an index too large, or was the "
        "memory freed?");
  } else {
    say_last_words(
        "a process on rank %d followed a pointer to memory that one on rank %d has from malloc(): "
        "what is allocated after CREATE is private to a process; what others use must come from "
        "G_MALLOC (sojourn_shared_alloc)",
        job.me, owner);
  }
  return false;
}

bool on_stack_fault(const page_fault& fault, void*) {
  const int owner = addresses.stacks_home(fault.address);
  if (owner != job.me) {
    say_last_words(
        "a process on rank %d followed a pointer into the stack of one on rank %d: local variables "
        "are private to a process; what others use must come from G_MALLOC (sojourn_shared_alloc)",
        job.me, owner);
  }
  return false;  // a stack that overflowed is told by the report
}

/// What a program has of its own lies above 4 GiB, but for its code and its global variables.
constexpr std::uint64_t half = std::uint64_t{1} << 32;

bool on_half_pointer_fault(const page_fault& fault, void*) {
  if (fault.address >= reinterpret_cast<std::uint64_t>(__executable_start) &&
      fault.address < reinterpret_cast<std::uint64_t>(_end)) {
    say_last_words(
        "a store to 0x%llx, which is the program's code or its constants: a string in quotes "
        "cannot "
        "be changed; copy it to an array",
        static_cast<unsigned long long>(fault.address));
    return false;
  }
  say_last_words(
      "an access to 0x%llx, through a null pointer, or one that was kept in an int or unsigned and "
      "has lost its upper half: pointers have 64 bits (the compiler warns: \"cast from pointer to "
      "integer\", \"makes pointer from integer\"); use long",
      static_cast<unsigned long long>(fault.address));
  return false;
}

}  // namespace

void watch_foreign_memory() {
  const std::uint64_t heap = addresses.program_heap();
  // A page at a null pointer is told by the report.
  if (!add_fault_range(4096, half, on_half_pointer_fault, nullptr) ||
      !add_fault_range(heap, heap + addresses.program_heap_bytes(), on_heap_fault, nullptr) ||
      !add_fault_range(addresses.stacks, addresses.stacks_end(), on_stack_fault, nullptr))
    throw error(
        "faults at the private memory of processes cannot be watched: other parts of the "
        "program have registered too many ranges");
}

}  // namespace sojourn::detail
