// SPDX-License-Identifier: Apache-2.0
// nlohmann's JSON, whose members json.cpp compiles for all sources that include this.
#pragma once

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
