#include "rdma_transport/hardware/device_list.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rdma {

DeviceList DeviceList::Get() {
  int count = 0;
  // Null and ENOSYS where the kernel has no InfiniBand: as good as none.
  ibv_device** const list = ibv_get_device_list(&count);
  return DeviceList(list, list == nullptr ? 0 : count);
}

DeviceList::~DeviceList() {
  if (list_ != nullptr) ibv_free_device_list(list_);
}

std::vector<std::string> DeviceList::names() const {
  std::vector<std::string> names;
  for (int i = 0; i < count_; ++i) {
    names.emplace_back(ibv_get_device_name(list_[i]));
  }
  return names;
}

ibv_device* DeviceList::Find(std::string_view name) const {
  for (int i = 0; i < count_; ++i) {
    if (name == ibv_get_device_name(list_[i])) return list_[i];
  }
  return nullptr;
}

absl::Status DeviceList::NotFound(std::string_view name) const {
  if (count_ == 0) {
    return absl::NotFoundError(absl::StrCat(
        "no RDMA device named '", std::string(name),
        "': this host has none. Load the driver of the NIC (and of soft-RoCE: "
        "`modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NETDEV`), or "
        "use the device 'soft', which connects processes of one host"));
  }
  return absl::NotFoundError(absl::StrCat("no RDMA device named '",
                                          std::string(name), "': there is ",
                                          absl::StrJoin(names(), ", ")));
}

}  // namespace rdma
