// The RDMA devices that libibverbs knows. ibv_get_device_list(3).
//
//   const DeviceList devices = DeviceList::Get();
//   ibv_device* device = devices.Find("mlx5_0");
//
// A snapshot: devices that come later need another. Thread rule: const.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_DEVICE_LIST_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_DEVICE_LIST_H_

#include <infiniband/verbs.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace rdma {

class DeviceList {
 public:
  // Empty where there are none, or no kernel support at all.
  static DeviceList Get();
  ~DeviceList();

  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::vector<std::string> names() const;
  // Null where there is none of that name. The device lives as long as this, or
  // as a context that was opened of it.
  ibv_device* Find(std::string_view name) const;
  // NOT_FOUND: which there are, and what to do.
  absl::Status NotFound(std::string_view name) const;

 private:
  DeviceList(ibv_device** list, int count) : list_(list), count_(count) {}

  ibv_device** const list_;  // null if empty
  const int count_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_DEVICE_LIST_H_
