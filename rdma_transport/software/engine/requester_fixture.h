// A requester of a test's own, on a link and a CQ of the test's.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REQUESTER_FIXTURE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REQUESTER_FIXTURE_H_

#include <memory>

#include "gtest/gtest.h"
#include "rdma_transport/software/engine/async_events.h"
#include "rdma_transport/software/engine/completion_queue.h"
#include "rdma_transport/software/engine/device_segment.h"
#include "rdma_transport/software/engine/fake_link.h"
#include "rdma_transport/software/engine/qp_context.h"
#include "rdma_transport/software/engine/requester.h"

namespace rdma::soft {

class RequesterFixture : public testing::Test, public PollTarget {
 protected:
  // A derived test sets what else qp_ needs before it calls this.
  void SetUp() override {
    events_ = *AsyncEvents::Create();
    cq_ = std::make_unique<CompletionQueue>(&context_, 64, nullptr, nullptr,
                                            &line_, 0, events_.get());
    cq_->AddTarget(this);
    qp_.send_cq = qp_.recv_cq = cq_.get();
    qp_.target = this;
    qp_.link = &link_;
    requester_ = std::make_unique<Requester>(
        &qp_, ibv_qp_cap{.max_send_wr = 32, .max_send_sge = 1}, false);
    requester_->SetRunning(true);
  }
  void TearDown() override {
    requester_.reset();
    cq_->RemoveTarget(this);
    cq_->Detach();
  }

  // PollTarget:
  Taken TakeSmall(ibv_wc* next, ibv_wc*, uint64_t*) override {
    return {next, false};
  }
  void Progress() override {}
  void ServiceLink() override {}
  void Retire(uint32_t slots) override { requester_->Retire(slots); }

  ibv_context context_ = {};
  CqLine line_ = {};
  std::unique_ptr<AsyncEvents> events_;
  std::unique_ptr<CompletionQueue> cq_;
  FakeLink link_;
  QpContext qp_;
  std::unique_ptr<Requester> requester_;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REQUESTER_FIXTURE_H_
