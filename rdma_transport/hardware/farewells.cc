#include "rdma_transport/hardware/farewells.h"

#include <infiniband/verbs.h>

#include <utility>

namespace rdma {

bool CanBidFarewell(const rdma_cm_id& id) {
  if (id.verbs == nullptr) return true;
  ibv_port_attr port;
  return ibv_query_port(id.verbs, id.port_num, &port) != 0 ||
         port.state == IBV_PORT_ACTIVE;
}

void Farewells::Add(UniqueCmId id) {
  id->context = nullptr;
  ids_.push_back(std::move(id));
}

void Farewells::BidAll() {
  std::erase_if(ids_, [](const UniqueCmId& id) { return CanBidFarewell(*id); });
}

void Farewells::Drop(const rdma_cm_id* id) {
  std::erase_if(ids_, [id](const UniqueCmId& it) { return it.get() == id; });
}

}  // namespace rdma
