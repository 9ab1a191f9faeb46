// SPDX-License-Identifier: Apache-2.0
#if __has_include(<ucp/api/ucp.h>)

#include "transport/link/ucx/library.hpp"

#include <cstdlib>
#include <optional>
#include <utility>

#include "base/loaded_libraries.hpp"
#include "transport/link/rdma_devices.hpp"

namespace sojourn::detail::ucx {

namespace {

constexpr const char* file = "libucp.so.0";

/// A setting that UCX reads once, while it is loaded, unless the user has made it.
class set_while_loading {
 public:
  set_while_loading(const char* name, const char* value)
      : name_(std::getenv(name) == nullptr ? name : nullptr) {
    if (name_ != nullptr) setenv(name_, value, 1);
  }
  ~set_while_loading() {
    if (name_ != nullptr) unsetenv(name_);
  }
  set_while_loading(const set_while_loading&) = delete;

 private:
  const char* name_;
};

std::pair<library, std::string> loaded() {
  library all{};
  // The runtime handles faults, and the launcher reports crashes.
  const set_while_loading no_handlers("UCX_HANDLE_ERRORS", "none");
  // UCX can rewrite functions of the C library, to learn which memory is given back. It must do so
  // when a device has been told of that memory. Otherwise it is told not to, because address
  // sanitizers do not allow it.
  std::optional<set_while_loading> no_hooks;
  if (rdma_devices().empty()) no_hooks.emplace("UCX_MEM_EVENTS", "n");
  const optional_library ucp(file);
  if (!ucp) return {all, ucp.why_not()};
  std::string lacks;
  const auto find = [&](const char* name, auto& function) {
    if (!ucp.find(name, function) && lacks.empty()) lacks = std::string(file) + " has no " + name;
  };
  find("ucp_get_version_string", all.get_version_string);
  find("ucp_init_version", all.init_version);
  find("ucp_cleanup", all.cleanup);
  find("ucp_worker_create", all.worker_create);
  find("ucp_worker_destroy", all.worker_destroy);
  find("ucp_worker_query", all.worker_query);
  find("ucp_worker_get_address", all.worker_get_address);
  find("ucp_worker_release_address", all.worker_release_address);
  find("ucp_worker_get_efd", all.worker_get_efd);
  find("ucp_worker_arm", all.worker_arm);
  find("ucp_worker_progress", all.worker_progress);
  find("ucp_worker_set_am_recv_handler", all.worker_set_am_recv_handler);
  find("ucp_ep_create", all.ep_create);
  find("ucp_ep_close_nbx", all.ep_close_nbx);
  find("ucp_am_send_nbx", all.am_send_nbx);
  find("ucp_am_recv_data_nbx", all.am_recv_data_nbx);
  find("ucp_am_data_release", all.am_data_release);
  find("ucp_request_check_status", all.request_check_status);
  find("ucp_request_free", all.request_free);
  find("ucs_status_string", all.status_string);
  return {all, lacks};
}

}  // namespace

const library* load(std::string& why_not) {
  static const auto [all, lacks] = loaded();
  why_not = lacks;
  return lacks.empty() ? &all : nullptr;
}

}  // namespace sojourn::detail::ucx

#endif
