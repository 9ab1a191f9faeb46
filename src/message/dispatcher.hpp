// SPDX-License-Identifier: Apache-2.0
// Where messages meet fibers. What messages mean is known to the floors above, which register
// handlers. The dispatcher's parts:
//
//   runtime_message.hpp  which messages there are
//   outbound             sending, with back-pressure
//   inbound              handlers
//   loop                 what every rank runs: both of these, fibers and sleeping
//   losses               ranks that have ended
//   hooks.hpp            what the floors above do for it
#pragma once

#include "message/hooks.hpp"
#include "message/inbound.hpp"
#include "message/loop.hpp"
#include "message/losses.hpp"
#include "message/outbound.hpp"
#include "message/runtime_message.hpp"
