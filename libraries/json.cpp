// SPDX-License-Identifier: Apache-2.0
#include "compiled_json.hpp"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
