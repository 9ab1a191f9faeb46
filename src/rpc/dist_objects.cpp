// SPDX-License-Identifier: Apache-2.0
#include "rpc/dist_objects.hpp"

#include <map>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/waiters.hpp"
#include "memory/runtime_resource.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/waiters.hpp"
#include "sojourn/dist_object.hpp"

namespace sojourn::detail {

namespace {

struct entry {
  void* object = nullptr;  ///< Null: it is not made yet.
  const void* type = nullptr;
  std::size_t calls = 0;                  ///< How many calls run in the object.
  bool is_ending = false;                 ///< Calls find the object no longer.
  waiters asking{waits_at::dist_object};  ///< Fibers that wait until it is made, or never will be.
  waiters leaving{
      waits_at::dist_object};  ///< The fiber that destroys it, until no call runs in it.
};

struct name_count {
  std::string text;
  std::uint64_t begun = 0;
};

struct registry {
  std::pmr::map<dist_key, entry> entries{runtime_resource()};
  std::pmr::map<std::uint64_t, name_count> names{runtime_resource()};
};
/// Never destroyed, because dist_objects may be destroyed after the job's end.
registry& all() {
  static auto* made = new (runtime_memory(sizeof(registry))) registry;
  return *made;
}

std::uint64_t hash_of(std::string_view name) {
  if (name.empty()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash == 0 ? 1 : hash;
}

void wake_all(waiters& queue) {
  while (!queue.empty()) make_ready(take_waiter(queue), resumed::here);
}

std::string text_of(const dist_key& key) {
  const auto found = all().names.find(key.name);
  const bool is_known = found != all().names.end() && key.name != 0;
  return format("number %llu of the dist_objects %s%s", static_cast<unsigned long long>(key.number),
                key.name == 0 ? "without a name"
                : is_known    ? "with the name "
                              : "with a name that no dist_object of this rank has",
                is_known ? found->second.text.c_str() : "");
}

bool was_begun(const dist_key& key) {
  const auto found = all().names.find(key.name);
  return found != all().names.end() && key.number <= found->second.begun;
}

/// This rank's entry of an object; suspends until the object is made.
entry& find(const dist_key& key, const void* type) {
  if (key.number == 0)
    throw error("this dist_id names no dist_object: take it from dist_object::id()");
  for (;;) {
    const auto found = all().entries.find(key);
    const bool is_known = found != all().entries.end();
    if (is_known ? found->second.is_ending : was_begun(key)) {
      throw dist_object_destroyed(
          format("a dist_object is used after it was destroyed on rank %d: %s", job.me,
                 text_of(key).c_str()));
    }
    if (is_known && found->second.object != nullptr) {
      if (found->second.type == type) return found->second;
      throw error(
          format("rank %d has a dist_object of another type there, %s: make them in the same order "
                 "on all ranks, or by name",
                 job.me, text_of(key).c_str()));
    }
    (void)wait_in(all().entries[key].asking);
  }
}

}  // namespace

std::string_view checked_name(std::string_view name) {
  if (name.empty()) throw error("the name of a dist_object is empty");
  return name;
}

dist_key begin_dist_object(std::string_view name) {
  if (running_piece() == nullptr) {
    throw error(
        "a dist_object is made outside of run(): make it in the function that is passed to run()");
  }
  const std::uint64_t hash = hash_of(name);
  name_count& of = all().names[hash];
  if (of.begun == 0) of.text = name;
  if (of.text != name) {
    throw error(format("the names of two dist_objects, %s and %s, have the same hash: change one",
                       of.text.c_str(), std::string(name).c_str()));
  }
  const dist_key key{hash, of.begun + 1};
  (void)all().entries[key];  // calls of other ranks may already wait in it
  ++of.begun;
  return key;
}

void publish_dist_object(const dist_key& key, void* object, const void* type) {
  entry& e = all().entries[key];
  e.object = object;
  e.type = type;
  wake_all(e.asking);
}

void end_dist_object(const dist_key& key, const void* object) noexcept {
  const auto found = all().entries.find(key);
  if (found == all().entries.end() || found->second.object != object) {
    die("a dist_object is destroyed on rank %d, which has not made it: it must not lie in frames "
        "that migrate",
        job.me);
  }
  entry& e = found->second;
  e.is_ending = true;
  wake_all(e.asking);
  // Outside of fibers this waits for nothing: the job has ended, and nothing runs any more.
  while (e.calls != 0 && running_piece() != nullptr) (void)wait_in(e.leaving);
  all().entries.erase(key);
}

const char* unsaved_dist_object(bool (*is_saved)(const void* object)) {
  for (const auto& [key, e] : all().entries) {
    if (!e.asking.empty()) return "a fiber waits until a dist_object is made";
    if (e.calls != 0) return "a call is in a dist_object";
    if (e.object != nullptr && is_saved(e.object)) {
      return "a dist_object lies in the frames or the heap of a thread, or in the global heap";
    }
  }
  return nullptr;
}

void* find_dist_object(const dist_key& key, const void* type) { return find(key, type).object; }

bool dist_object_is_here(const dist_key& key) {
  const auto found = all().entries.find(key);
  return found != all().entries.end() && found->second.object != nullptr &&
         !found->second.is_ending;
}

dist_use::dist_use(const dist_key& key, const void* type) : key_(key) {
  entry& e = find(key, type);
  ++e.calls;
  object_ = e.object;
}

dist_use::~dist_use() {
  entry& e = all().entries.at(key_);
  if (--e.calls == 0) wake_all(e.leaving);
}

}  // namespace sojourn::detail
