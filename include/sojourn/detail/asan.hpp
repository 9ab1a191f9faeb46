// SPDX-License-Identifier: Apache-2.0
// SOJOURN_ASAN: whether this is compiled for the address sanitizer.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SOJOURN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SOJOURN_ASAN 1
#endif
#endif
#ifndef SOJOURN_ASAN
#define SOJOURN_ASAN 0
#endif
