// SPDX-License-Identifier: Apache-2.0
// What the floors above, and threads, do where pieces leave and arrive.
#pragma once

namespace sojourn::detail {

struct piece;

/// Bases of threads on their way. (thread)
struct base_hooks {
  /// `p`, the base of a thread that ran until now, is about to leave for `to`.
  void (*moves_itself)(piece* p, int to) = [](piece*, int) {};
  /// The first message about a base whose bytes come in parts has come. (Bases that come home are
  /// counted in the order in which they left, so the rank must not wait for all bytes.)
  void (*announced)(const piece* p, int from) = [](const piece*, int) {};
  /// The base has arrived. `was_announced`: `announced` was called for it.
  void (*arrives)(piece* p, int from, bool was_announced) = [](piece*, int, bool) {};
};

/// Each member is filled in once, by the floor or folder that it belongs to, while the rank comes
/// to life.
struct migrate_hooks {
  base_hooks base;
  /// Frames are about to leave a rank that shares memory. (shared)
  void (*frames_leave)() = [] {};
};
extern migrate_hooks on_migrate;

}  // namespace sojourn::detail
