// SPDX-License-Identifier: Apache-2.0
#include "launcher/report.hpp"

#include <sys/wait.h>

#include <cctype>
#include <csignal>
#include <cstring>

#include "frames/symbols.hpp"
#include "job/stack_text.hpp"

namespace sojourn::detail {
namespace {

bool is_written(const crash_record& crash) {
  // Pairs with the release store that ends the dying rank's report.
  return crash.written.load(std::memory_order_acquire) == 1;
}

/// The signal a rank died of, or 0.
int fatal_signal(const rank_end& end, const crash_record& crash) {
  if (is_written(crash) && crash.signal > 0 && crash.signal < NSIG) return crash.signal;
  return end.wait_status && WIFSIGNALED(*end.wait_status) ? WTERMSIG(*end.wait_status) : 0;
}

bool has_address(int signal, std::uint64_t address) {
  if (address == crash_record::no_address) return false;
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGTRAP;
}

/// What a dying process wrote is shown, but never trusted to be text.
std::string message_text(const crash_record& crash) {
  std::string text(crash.message, strnlen(crash.message, sizeof crash.message));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  std::string shown;
  for (char c : text) {
    if (c == '\n') {
      shown += "\n  ";
    } else if (static_cast<unsigned char>(c) < ' ' && c != '\t') {
      shown += '?';
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace

bool is_failure(const rank_end& end) {
  if (!end.wait_status) return true;
  if (!WIFEXITED(*end.wait_status) || WEXITSTATUS(*end.wait_status) != 0) return true;
  return end.never_joined || end.state == rank_state::attached;
}

bool is_refusal(const rank_end& end) {
  return end.wait_status && WIFEXITED(*end.wait_status) && WEXITSTATUS(*end.wait_status) == 2;
}

int job_status(const rank_end& end, const crash_record& crash) {
  if (int signal = fatal_signal(end, crash); signal != 0) return 128 + signal;
  if (end.wait_status && WIFEXITED(*end.wait_status) && WEXITSTATUS(*end.wait_status) != 0) {
    return WEXITSTATUS(*end.wait_status);
  }
  return 1;
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  const char* description = sigdescr_np(signal);
  if (name == nullptr || description == nullptr) return "signal " + std::to_string(signal);
  std::string lower = description;
  // Descriptions are capitalised as titles are; "CPU" and "I/O" stay as they are.
  if (lower.size() > 1 && std::islower(static_cast<unsigned char>(lower[1])) != 0) {
    lower[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(lower[0])));
  }
  return "SIG" + std::string(name) + " (" + lower + ")";
}

std::string describe_end(const rank_end& end, const crash_record& crash) {
  if (int signal = fatal_signal(end, crash); signal != 0) {
    std::string text = "was killed by " + signal_text(signal);
    if (is_written(crash) && has_address(signal, crash.address))
      text += " at address " + hexadecimal(crash.address);
    if (end.wait_status && WIFSIGNALED(*end.wait_status) && WCOREDUMP(*end.wait_status)) {
      text += ", core dumped";
    }
    return text;
  }
  if (!end.wait_status) return "failed";
  std::string text = "exited with status " + std::to_string(WEXITSTATUS(*end.wait_status));
  if (WEXITSTATUS(*end.wait_status) != 0) return text;
  return text + (end.never_joined ? " without joining the job that other ranks are waiting to start"
                                  : " before its part of the job was finished");
}

std::string death_report(const rank_end& end, const crash_record& crash, const std::string& program,
                         const std::string& symbol_file, std::uint64_t sender) {
  std::string text = "sojourn run: rank " + std::to_string(end.rank) + " (pid " +
                     std::to_string(end.pid) + ", " + program + ") " + describe_end(end, crash) +
                     "\n";
  if (is_written(crash)) {
    std::string message = message_text(crash);
    if (!message.empty()) text += "  " + message + "\n";
    text += stack_text(crash, symbol_file, sender);
  } else if (fatal_signal(end, crash) == SIGKILL) {
    text += end.killed_for_memory
                ? "  the kernel killed it because memory ran out: start fewer ranks, give the job "
                  "more memory, or use less\n"
                : "  no process can tell who sends SIGKILL: kill -9, or the system, which does so "
                  "when memory runs out (see dmesg)\n";
  } else if (fatal_signal(end, crash) != 0) {
    text += "  it left no stack\n";
  }
  return text;
}

}  // namespace sojourn::detail
