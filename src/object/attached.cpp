// SPDX-License-Identifier: Apache-2.0
// Objects that are attached to others: they move to where those have moved, in the background.
//
// The home of an object knows what is attached to it. When the object has come to a rank, its home
// tells that rank to bring the others. The home of each of these knows that it is attached, too, so
// that nobody moves what has been destroyed, or made in its place.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "frames/symbols.hpp"
#include "object/objects_of_rank.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn::detail {

namespace {

struct follow_task : task {
  std::uint64_t address;
  int rank;
};

}  // namespace

void objects_of_rank::note_attached(std::uint64_t address, object_shape shape, std::uint64_t to) {
  follower& known = followers_[address];
  known.shape = shape;
  if (std::find(known.to.begin(), known.to.end(), to) == known.to.end()) known.to.push_back(to);
  note_copied();  // so that destroy() forgets it
}

void objects_of_rank::attach_here(std::uint64_t to, const attached_object& object) {
  detach_here(to, object.address);
  attached_[to].push_back(object);
  note_copied();
}

void objects_of_rank::detach_here(std::uint64_t to, std::uint64_t object) {
  if (const auto known = attached_.find(to); known != attached_.end()) {
    std::erase_if(known->second, [&](const attached_object& a) { return a.address == object; });
    if (known->second.empty()) attached_.erase(known);
  }
  note_copied();
}

void objects_of_rank::end_following(std::uint64_t object, std::uint64_t to) {
  if (const auto known = followers_.find(object); known != followers_.end()) {
    std::erase(known->second.to, to);
    if (known->second.to.empty()) followers_.erase(known);
  }
  note_copied();
}

std::vector<attached_object> objects_of_rank::attached_to(std::uint64_t address) const {
  const auto known = attached_.find(address);
  return known == attached_.end() ? std::vector<attached_object>() : known->second;
}

bool objects_of_rank::follows(std::uint64_t address, object_shape shape) const {
  const auto known = followers_.find(address);
  return known != followers_.end() && known->second.shape.bytes == shape.bytes &&
         known->second.shape.type == shape.type;
}

/// Objects of this rank are about to be destroyed. Suspends.
void objects_of_rank::forget_attached(std::uint64_t address, std::size_t bytes) {
  struct tie {
    std::uint64_t to;
    std::uint64_t object;
  };
  std::vector<tie> followed;
  const auto first_follower = followers_.lower_bound(address);
  const auto end_of_followers = followers_.lower_bound(address + bytes);
  for (auto at = first_follower; at != end_of_followers; ++at) {
    for (const std::uint64_t to : at->second.to) followed.push_back({to, at->first});
  }
  followers_.erase(first_follower, end_of_followers);
  std::vector<tie> following;
  const auto first_attached = attached_.lower_bound(address);
  const auto end_of_attached = attached_.lower_bound(address + bytes);
  for (auto at = first_attached; at != end_of_attached; ++at) {
    for (const attached_object& a : at->second) following.push_back({at->first, a.address});
  }
  attached_.erase(first_attached, end_of_attached);
  // A rank that has ended need not be told.
  const auto tell = [](int rank, auto what, const tie& t) {
    try {
      rpc(rank, what, t.to, t.object).get();
    } catch (const rank_lost&) {
    }
  };
  for (const tie& t : followed)
    tell(
        owner_of(t.to),
        [](std::uint64_t to, std::uint64_t object) { objects_here->detach_here(to, object); }, t);
  for (const tie& t : following)
    tell(
        owner_of(t.object),
        [](std::uint64_t to, std::uint64_t object) { objects_here->end_following(object, to); }, t);
}

/// An object of this rank has come to `rank` for a call that is made there.
void objects_of_rank::attached_should_follow(std::uint64_t address, int rank) {
  if (attached_.empty() || !attached_.contains(address)) return;
  auto* const t = new follow_task;
  t->address = address;
  t->rank = rank;
  t->scope = nullptr;
  t->run = [](task* self) {
    const follow_task told = *static_cast<follow_task*>(self);
    delete static_cast<follow_task*>(self);
    try {
      rpc_ff(told.rank, [](std::uint64_t a) { objects_here->bring_attached(a); }, told.address);
    } catch (const rank_lost&) {
      // nothing is there to follow it
    }
  };
  post_task(t);
}

void objects_of_rank::bring_attached(std::uint64_t address) {
  // A list whose elements are attached one to the next does not come as a whole.
  constexpr std::size_t most = 256;
  std::unordered_set<std::uint64_t> seen{address};
  std::vector<std::uint64_t> came{address};
  stays_here stays;
  try {
    for (std::size_t i = 0; i < came.size(); ++i) {
      const auto attached =
          rpc(
              owner_of(came[i]), [](std::uint64_t a) { return objects_here->attached_to(a); },
              came[i])
              .get();
      for (const attached_object& a : attached) {
        if (seen.size() >= most || !rules().has_object(address)) return;
        if (!seen.insert(a.address).second) continue;
        if (is_home(a.address) && !follows(a.address, a.shape)) continue;
        const bool is_here_already = rules().has_object(a.address);
        if (is_here_already || bring_here(a.address, a.shape, false, 0, true).here != nullptr)
          came.push_back(a.address);
      }
    }
  } catch (const rank_lost&) {
    // the others stay where they are
  }
}

void attach_objects(std::uint64_t to, std::uint64_t object, object_shape shape) {
  for (const std::uint64_t address : {to, object}) {
    if (owner_of(address) == no_owner) bad_access(address, "Method = &attach]");
  }
  rpc(
      owner_of(object),
      [](std::uint64_t t, std::uint64_t o, object_shape s) {
        objects_here->note_attached(o, s, t);
      },
      to, object, shape)
      .get();
  rpc(
      owner_of(to),
      [](std::uint64_t t, std::uint64_t o, object_shape s) {
        objects_here->attach_here(t, {o, s});
      },
      to, object, shape)
      .get();
}

void detach_objects(std::uint64_t to, std::uint64_t object) {
  for (const std::uint64_t address : {to, object}) {
    if (owner_of(address) == no_owner) bad_access(address, "Method = &detach]");
  }
  rpc(
      owner_of(to), [](std::uint64_t t, std::uint64_t o) { objects_here->detach_here(t, o); }, to,
      object)
      .get();
  rpc(
      owner_of(object), [](std::uint64_t t, std::uint64_t o) { objects_here->end_following(o, t); },
      to, object)
      .get();
}

void refuse_to_attach(const char* type) {
  throw error(format(
      "attach(): objects of type %s do not move, because the program uses them through pointers, "
      "put or get (global_ptr::local), or calls them in ways that cannot look for them, or because "
      "the job has several programs (docs/policies.md)",
      demangle_type(type).c_str()));
}

}  // namespace sojourn::detail
