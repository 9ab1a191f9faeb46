// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <cerrno>
#include <cstdio>

#include "sojourn/jobs/launcher.hpp"

namespace sojourn::tools {
namespace {

int failure = 0;

void note_failure(bool failed) {
  if (failed && failure == 0) failure = errno;
}

}  // namespace

void print(const std::string& text) {
  errno = EIO;
  note_failure(std::fwrite(text.data(), 1, text.size(), stdout) != text.size());
}

void complain(const std::string& text) {
  std::string shown = printable(text);
  (void)std::fwrite(shown.data(), 1, shown.size(), stderr);
}

int finish_output() {
  errno = EIO;
  note_failure(std::fflush(stdout) != 0);
  return failure;
}

}  // namespace sojourn::tools
