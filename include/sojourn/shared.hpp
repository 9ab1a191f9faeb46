// SPDX-License-Identifier: Apache-2.0
// Shared memory over processes: plain pointers to memory that looks the same on all ranks, loaded
// from and stored to with plain loads and stores, and kept consistent page by page
// (docs/shared_memory.md).
//
// A program without data races sees sequentially consistent memory. What orders: locks, barriers,
// the beginning and the end of run_threads(), calls and their answers, and moves. Neighbouring
// bytes may be stored to by different ranks at the same time. Source: Thitikamol and Keleher,
// Per-Node Multi-Threading and Remote Latency (CVM).
#pragma once

#include "sojourn/shared/atomic.hpp"
#include "sojourn/shared/io.hpp"
#include "sojourn/shared/memory.hpp"
#include "sojourn/shared/reduce.hpp"
#include "sojourn/shared/sync.hpp"
#include "sojourn/shared/threads.hpp"
