// SPDX-License-Identifier: Apache-2.0
// All of Sojourn: a runtime for programs whose data is spread over many processes. One word at an
// access (`via::rpc`, `via::migrate`) changes what it costs and never what it means.
#pragma once

#include "sojourn/activate.hpp"
#include "sojourn/aggregate.hpp"
#include "sojourn/balance.hpp"
#include "sojourn/checkpoint.hpp"
#include "sojourn/clock.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"
#include "sojourn/future.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/inline_string.hpp"
#include "sojourn/mpmd.hpp"
#include "sojourn/non_blocking.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/one_sided.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/sleep.hpp"
#include "sojourn/stop_token.hpp"
#include "sojourn/sync.hpp"
#include "sojourn/thread.hpp"
#include "sojourn/travels.hpp"
#include "sojourn/via.hpp"
