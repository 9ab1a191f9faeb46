// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sojourn::detail {

/// True for types that a template makes.
template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... A>
inline constexpr bool is_a<Template<A...>, Template> = true;

}  // namespace sojourn::detail
