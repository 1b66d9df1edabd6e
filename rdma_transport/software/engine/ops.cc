#include "rdma_transport/software/engine/ops.h"

#include "rdma_transport/software/engine/completion_queue.h"
#include "rdma_transport/software/engine/device.h"
#include "rdma_transport/software/engine/memory_registry.h"
#include "rdma_transport/software/engine/queue_pair.h"
#include "rdma_transport/software/engine/receive_queue.h"

namespace rdma::soft {
namespace {

// Runs `call` under the device's queue lock, or without one.
template <QueueLocking kLocking, typename Call>
auto Run(ibv_context* context, Call call) {
  if constexpr (kLocking == QueueLocking::kDevice) {
    const auto lock = DeviceOf(context)->LockQueues();
    return call();
  } else {
    return call();
  }
}

template <QueueLocking kLocking>
int PostSend(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  return Run<kLocking>(qp->context,
                       [&] { return FromVerbs(*qp).PostSend(wr, bad_wr); });
}

template <QueueLocking kLocking>
int PostReceive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  return Run<kLocking>(qp->context,
                       [&] { return FromVerbs(qp)->PostReceive(wr, bad_wr); });
}

template <QueueLocking kLocking>
int PostSrqReceive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  return Run<kLocking>(srq->context,
                       [&] { return FromVerbs(srq)->Post(wr, bad_wr); });
}

template <QueueLocking kLocking>
int PollCq(ibv_cq* cq, int capacity, ibv_wc* completions) {
  return Run<kLocking>(
      cq->context, [&] { return FromVerbs(cq)->Poll(capacity, completions); });
}

template <QueueLocking kLocking>
int RequestNotify(ibv_cq* cq, int solicited_only) {
  return Run<kLocking>(cq->context, [&] {
    return FromVerbs(cq)->RequestNotify(solicited_only != 0);
  });
}

// ibv_bind_mw(3): a type 1 window, bound by a work request that the device
// makes of the call.
template <QueueLocking kLocking>
int BindMw(ibv_qp* qp, ibv_mw* window, ibv_mw_bind* bind) {
  ibv_send_wr wr = {};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad_wr;
  const int error = PostSend<kLocking>(qp, &wr, &bad_wr);
  // The consumer may use the new key at once: the binding comes before what is
  // posted later.
  if (error == 0) window->rkey = wr.bind_mw.rkey;
  return error;
}

ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type) {
  return DeviceOf(pd->context)->memory().AllocMw(FromVerbs(pd), type);
}

int DeallocMw(ibv_mw* window) {
  return DeviceOf(window->context)
      ->memory()
      .DeallocMw(static_cast<MemoryWindow*>(window));
}

template <QueueLocking kLocking>
ibv_context_ops MakeTable() {
  ibv_context_ops ops = {};
  ops.post_send = PostSend<kLocking>;
  ops.post_recv = PostReceive<kLocking>;
  ops.post_srq_recv = PostSrqReceive<kLocking>;
  ops.poll_cq = PollCq<kLocking>;
  ops.req_notify_cq = RequestNotify<kLocking>;
  ops.alloc_mw = AllocMw;
  ops.dealloc_mw = DeallocMw;
  ops.bind_mw = BindMw<kLocking>;
  return ops;
}

}  // namespace

ibv_context_ops MakeOps(QueueLocking locking) {
  return locking == QueueLocking::kDevice ? MakeTable<QueueLocking::kDevice>()
                                          : MakeTable<QueueLocking::kNone>();
}

}  // namespace rdma::soft
