// SPDX-License-Identifier: Apache-2.0
// All of Sojourn: a runtime for programs whose data is spread over many processes. One word at an
// access (`via::rpc`, `via::migrate`) changes what it costs and never what it means.
#pragma once

// What a first program needs: ranks, objects and global pointers, calls and activations, futures,
// children in place, and operations of all ranks.
#include "sojourn/activate.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/dist_object.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"
#include "sojourn/fork.hpp"
#include "sojourn/future.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/local_ptr.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/one_sided.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/replicated.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/team.hpp"
#include "sojourn/via.hpp"

// More about calls: what travels with them, many small ones, calls of other programs.
#include "sojourn/calls/aggregate.hpp"
#include "sojourn/calls/batch.hpp"
#include "sojourn/calls/bundle.hpp"
#include "sojourn/calls/continuation.hpp"
#include "sojourn/calls/inline_string.hpp"
#include "sojourn/calls/mpmd.hpp"
#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/calls/travels.hpp"

// Waiting: for fibers of the same rank, for a time, for other threads.
#include "sojourn/waiting/clock.hpp"
#include "sojourn/waiting/monitor.hpp"
#include "sojourn/waiting/post.hpp"
#include "sojourn/waiting/sleep.hpp"
#include "sojourn/waiting/stop_token.hpp"
#include "sojourn/waiting/sync.hpp"
#include "sojourn/waiting/when_any.hpp"

// Threads that move, and load balance.
#include "sojourn/threads/balance.hpp"
#include "sojourn/threads/thread.hpp"

// Shared memory.
#include "sojourn/sharded.hpp"
#include "sojourn/shared.hpp"
#include "sojourn/shared/counters.hpp"

// (containers.hpp is apart: tables, counters, vectors and bags that are dealt out over ranks.)
//
// Jobs. (launcher.hpp, hosts.hpp and doctor.hpp are for programs that start jobs.)
#include "sojourn/jobs/checkpoint.hpp"
