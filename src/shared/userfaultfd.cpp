// SPDX-License-Identifier: Apache-2.0
// Protection by userfaultfd in its SIGBUS mode: an access that a page does not allow raises SIGBUS.
// The mapping of the program's view allows loads and stores everywhere. A page is closed by having
// no entry in the page table, and is open for loads only if its entry is write-protected.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/faults.hpp"
#include "base/owned_descriptors.hpp"
#include "shared/mapping.hpp"
#include "shared/protection.hpp"

// Newer than the headers of some systems that it runs on.
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP (static_cast<__u64>(1) << 1)
#endif

namespace sojourn::detail::pages {

namespace {

[[noreturn]] void refuse(const char* what, const char* reason) {
  throw error(
      format("shared memory cannot be protected by userfaultfd here: %s: %s; leave out "
             "SOJOURN_SHARED_PROTECTION, or set it to mprotect",
             what, reason));
}

class by_userfaultfd final : public protection {
 public:
  by_userfaultfd() {
    if (under_valgrind()) refuse("valgrind", "it does not know this system call");
    // A process without privileges may have only faults of its own code handled, not those of
    // system calls.
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    if (fd_ < 0) {
      refuse("the system call",
             errno == EPERM ? "this container's seccomp profile forbids it" : std::strerror(errno));
    }
    own_descriptor(fd_);
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM |
                   UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
    if (ioctl(fd_, UFFDIO_API, &api) != 0) {
      close_owned(fd_);
      refuse("it lacks features of Linux 6.4", std::strerror(errno));
    }
  }
  ~by_userfaultfd() override { close_owned(fd_); }
  by_userfaultfd(const by_userfaultfd&) = delete;
  by_userfaultfd& operator=(const by_userfaultfd&) = delete;

  const char* name() const override { return "userfaultfd"; }

  void cover(page_range range) override {
    uffdio_register r{};
    r.range = of(range);
    r.mode = UFFDIO_REGISTER_MODE_WP | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_MISSING;
    if (ioctl(fd_, UFFDIO_REGISTER, &r) != 0) {
      refuse("pages cannot be registered", std::strerror(errno));
    }
    // Access is allowed only now that the pages are registered: before, an access would have made a
    // page.
    if (mprotect(program_page(range.first), range.count * page_bytes, PROT_READ | PROT_WRITE) !=
        0) {
      refuse("pages cannot be opened", std::strerror(errno));
    }
  }

  void protect(page_range range, access from, access to) override {
    if (to == access::none) {
      if (madvise(program_page(range.first), range.count * page_bytes, MADV_DONTNEED) != 0) {
        fail("MADV_DONTNEED");
      }
    } else if (from == access::none) {
      open(range, to);
    } else {
      set_write_protection(range, to == access::load);
    }
  }

 private:
  static uffdio_range of(page_range range) {
    return {reinterpret_cast<__u64>(program_page(range.first)), range.count * page_bytes};
  }
  [[noreturn]] static void fail(const char* operation) {
    die("the access to pages of shared memory cannot be changed (%s: %s); "
        "SOJOURN_SHARED_PROTECTION=mprotect is the other way to do it",
        operation, std::strerror(errno));
  }

  /// Enters pages in the page table of the program's view. Their memory is in the runtime's view
  /// already.
  void open(page_range range, access to) {
    while (range.count != 0) {
      uffdio_continue c{};
      c.range = of(range);
      c.mode = UFFDIO_CONTINUE_MODE_DONTWAKE;
      if (to == access::load) c.mode |= UFFDIO_CONTINUE_MODE_WP;
      if (ioctl(fd_, UFFDIO_CONTINUE, &c) == 0) return;
      if (c.mapped > 0) {
        skip(range, static_cast<std::uint32_t>(c.mapped / static_cast<__s64>(page_bytes)));
      } else if (errno == EEXIST) {
        // The first page is there, perhaps for another access.
        set_write_protection({range.first, 1}, to == access::load);
        skip(range, 1);
      } else if (errno == EFAULT) {
        // Nobody has touched the first page yet: a load makes it, as zeros.
        (void)*reinterpret_cast<volatile char*>(runtime_page(range.first));
      } else if (errno != EAGAIN) {
        fail("UFFDIO_CONTINUE");
      }
    }
  }
  static void skip(page_range& range, std::uint32_t count) {
    range.first += count;
    range.count -= count;
  }

  void set_write_protection(page_range range, bool on) {
    uffdio_writeprotect w{};
    w.range = of(range);
    w.mode =
        static_cast<__u64>(on ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE);
    while (ioctl(fd_, UFFDIO_WRITEPROTECT, &w) != 0) {
      if (errno != EAGAIN) fail("UFFDIO_WRITEPROTECT");
    }
  }

  int fd_;
};

/// Tries each change of access on a page that was mapped only for this trial.
bool works(protection& by) {
  mapping trial(by);
  trial.grow(page_bytes);
  const auto becomes = [&by](access from, access to, access refused) {
    by.protect({0, 1}, from, to);
    return allows(0, to) && (refused == access::none || !allows(0, refused));
  };
  return !allows(0, access::load) && becomes(access::none, access::load, access::store) &&
         becomes(access::load, access::store, access::none) &&
         becomes(access::store, access::load, access::store) &&
         becomes(access::load, access::none, access::load) &&
         becomes(access::none, access::store, access::none) &&
         becomes(access::store, access::none, access::load);
}

/// While it lives, its range has a handler, so that faults can end the attempts of allows().
struct range_of_trial {
  range_of_trial()
      : added(add_fault_range(
            addresses.shared, addresses.shared + mapping::capacity(),
            [](const page_fault&, void*) { return false; }, nullptr)) {}
  ~range_of_trial() {
    if (added) remove_fault_range(addresses.shared);
  }
  range_of_trial(const range_of_trial&) = delete;
  range_of_trial& operator=(const range_of_trial&) = delete;
  const bool added;
};

}  // namespace

std::unique_ptr<protection> protect_by_userfaultfd() {
  auto by = std::make_unique<by_userfaultfd>();
  const range_of_trial range;
  if (!works(*by)) refuse("a trial", "a page allowed what it should not, or not what it should");
  return by;
}

}  // namespace sojourn::detail::pages
