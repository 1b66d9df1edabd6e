#include "rpc/ext/default_health_check_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.pb.h"
#include "rpc/internal/callback_server_stream.h"
#include "rpc/internal/callback_unary_handler.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/rpc_service_method.h"
#include "rpc/server_context.h"
#include "rpc/server_stream_callback.h"
#include "rpc/status.h"

namespace rpc {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr char kCheckPath[] = "/grpc.health.v1.Health/Check";
constexpr char kWatchPath[] = "/grpc.health.v1.Health/Watch";

bool IsTooLong(const HealthCheckRequest& request) {
  return request.service().size() >
         DefaultHealthCheckService::kMaxServiceNameBytes;
}

Status NameTooLong(StatusCode code, const HealthCheckRequest& request) {
  return Status(code,
                absl::StrCat("a service name of ", request.service().size(),
                             " bytes is too long: at most ",
                             DefaultHealthCheckService::kMaxServiceNameBytes));
}

// A watch that is refused.
class Refusal final : public ServerWriteReactor<HealthCheckResponse> {
 public:
  explicit Refusal(Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

// One client's watch of one service. Whoever writes, and who ends it from
// outside, is a party; the last one to leave calls Finish once it is due, so
// that nobody uses a watch that is gone.
class DefaultHealthCheckService::Watch final
    : public ServerWriteReactor<HealthCheckResponse> {
 public:
  Watch(DefaultHealthCheckService* service, CallbackServerContext* context,
        std::string name)
      : service_(*service), context_(*context), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // ---- Under the service's lock.

  // True where the caller is to call Write when it has let the lock go.
  bool Tell(ServingStatus status) {
    latest_ = status;
    return BeginWrite();
  }
  // The same for End.
  bool BeginEnd() {
    if (std::exchange(due_, true)) return false;
    cancel_ = writing_;
    ++parties_;
    return true;
  }

  // ---- Without it.

  void Write() { StartWrite(&response_); }

  // A message that is on its way may be so for as long as the client does not
  // read.
  void End() {
    if (cancel_) context_.TryCancel();
    bool finish;
    {
      absl::MutexLock lock(&service_.mutex_);
      --parties_;
      finish = MayFinish();
    }
    if (finish) FinishAtShutdown();
  }

  void OnWriteDone(bool ok) override {
    bool write;
    bool finish;
    {
      absl::MutexLock lock(&service_.mutex_);
      writing_ = false;
      --parties_;
      if (!ok) due_ = true;
      write = BeginWrite();
      finish = MayFinish();
    }
    if (write) Write();
    if (finish) FinishAtShutdown();
  }

  void OnCancel() override {
    bool finish;
    {
      absl::MutexLock lock(&service_.mutex_);
      due_ = true;
      finish = MayFinish();
    }
    if (finish) FinishAtShutdown();
  }

  void OnDone() override {
    service_.Remove(this);
    delete this;
  }

 private:
  bool BeginWrite() {
    if (due_ || writing_ || latest_ == told_) return false;
    told_ = latest_;
    response_.set_status(
        static_cast<HealthCheckResponse::ServingStatus>(latest_));
    writing_ = true;
    ++parties_;
    return true;
  }
  bool MayFinish() {
    return due_ && parties_ == 0 && !std::exchange(finished_, true);
  }
  // Of a watch that ended for another reason nobody hears.
  void FinishAtShutdown() {
    Finish(Status(StatusCode::CANCELLED, "the server shuts down"));
  }

  DefaultHealthCheckService& service_;
  CallbackServerContext& context_;
  const std::string name_;
  HealthCheckResponse response_;  // belongs to the writer
  // Of the service's lock.
  ServingStatus latest_ = ServingStatus::kNotKnown;
  std::optional<ServingStatus> told_;
  bool writing_ = false;
  int parties_ = 0;
  bool cancel_ = false;  // set once, by who ends it
  bool due_ = false;     // Finish
  bool finished_ = false;
};

// Hears that the server shuts down.
class DefaultHealthCheckService::WatchHandler final
    : public internal::MethodHandler {
 public:
  explicit WatchHandler(DefaultHealthCheckService* service)
      : service_(*service),
        handler_([this](CallbackServerContext* context,
                        const HealthCheckRequest* request) {
          return Begin(context, *request);
        }) {}

  internal::ServerCall* NewCall() override { return handler_.NewCall(); }
  void Shutdown() override { service_.EndWatches(); }

 private:
  ServerWriteReactor<HealthCheckResponse>* Begin(
      CallbackServerContext* context, const HealthCheckRequest& request) {
    if (IsTooLong(request)) {
      return new Refusal(NameTooLong(StatusCode::INTERNAL, request));
    }
    auto* const watch = new Watch(&service_, context, request.service());
    service_.Add(watch);
    return watch;
  }

  DefaultHealthCheckService& service_;
  internal::CallbackServerStreamingHandler<HealthCheckRequest,
                                           HealthCheckResponse>
      handler_;
};

DefaultHealthCheckService::DefaultHealthCheckService() {
  services_[""].status = ServingStatus::kServing;
  AddMethod(new internal::RpcServiceMethod(
      kCheckPath, internal::RpcMethod::NORMAL_RPC,
      new internal::CallbackUnaryHandler<HealthCheckRequest,
                                         HealthCheckResponse>(
          [this](CallbackServerContext* context,
                 const HealthCheckRequest* request,
                 HealthCheckResponse* response) {
            ServerUnaryReactor* const reactor = context->DefaultReactor();
            if (IsTooLong(*request)) {
              reactor->Finish(
                  NameTooLong(StatusCode::INVALID_ARGUMENT, *request));
              return reactor;
            }
            const ServingStatus status = StatusOf(request->service());
            response->set_status(
                static_cast<HealthCheckResponse::ServingStatus>(status));
            reactor->Finish(
                status == ServingStatus::kNotKnown
                    ? Status(StatusCode::NOT_FOUND, "service name unknown")
                    : Status::OK);
            return reactor;
          })));
  AddMethod(new internal::RpcServiceMethod(
      kWatchPath, internal::RpcMethod::SERVER_STREAMING,
      new WatchHandler(this)));
}

DefaultHealthCheckService::~DefaultHealthCheckService() = default;

void DefaultHealthCheckService::SetServingStatus(
    const std::string& service_name, bool serving) {
  std::vector<Watch*> writers;
  {
    absl::MutexLock lock(&mutex_);
    SetStatus(services_[service_name],
              serving && !shut_down_ ? ServingStatus::kServing
                                     : ServingStatus::kNotServing,
              writers);
  }
  for (Watch* const watch : writers) watch->Write();
}

void DefaultHealthCheckService::SetServingStatus(bool serving) {
  std::vector<Watch*> writers;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    SetStatusOfAll(
        serving ? ServingStatus::kServing : ServingStatus::kNotServing,
        writers);
  }
  for (Watch* const watch : writers) watch->Write();
}

void DefaultHealthCheckService::Shutdown() {
  std::vector<Watch*> writers;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(shut_down_, true)) return;
    SetStatusOfAll(ServingStatus::kNotServing, writers);
  }
  for (Watch* const watch : writers) watch->Write();
}

void DefaultHealthCheckService::SetStatusOfAll(ServingStatus status,
                                               std::vector<Watch*>& writers) {
  for (auto& [name, watched] : services_) {
    if (watched.status != ServingStatus::kNotKnown) {
      SetStatus(watched, status, writers);
    }
  }
}

void DefaultHealthCheckService::SetStatus(Watched& watched,
                                          ServingStatus status,
                                          std::vector<Watch*>& writers) {
  watched.status = status;
  for (Watch* const watch : watched.watches) {
    if (watch->Tell(status)) writers.push_back(watch);
  }
}

DefaultHealthCheckService::ServingStatus DefaultHealthCheckService::StatusOf(
    const std::string& service_name) {
  absl::MutexLock lock(&mutex_);
  const auto found = services_.find(service_name);
  return found == services_.end() ? ServingStatus::kNotKnown
                                  : found->second.status;
}

void DefaultHealthCheckService::Add(Watch* watch) {
  bool write = false;
  bool end = false;
  {
    absl::MutexLock lock(&mutex_);
    if (ending_) {
      end = watch->BeginEnd();
    } else {
      Watched& watched = services_[watch->name()];
      watched.watches.insert(watch);
      write = watch->Tell(watched.status);
    }
  }
  if (write) watch->Write();
  if (end) watch->End();
}

void DefaultHealthCheckService::Remove(Watch* watch) {
  absl::MutexLock lock(&mutex_);
  const auto found = services_.find(watch->name());
  if (found == services_.end()) return;
  Watched& watched = found->second;
  watched.watches.erase(watch);
  if (watched.watches.empty() && watched.status == ServingStatus::kNotKnown) {
    services_.erase(found);
  }
}

void DefaultHealthCheckService::EndWatches() {
  std::vector<Watch*> watches;
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    for (auto& [name, watched] : services_) {
      for (Watch* const watch : watched.watches) {
        if (watch->BeginEnd()) watches.push_back(watch);
      }
    }
  }
  for (Watch* const watch : watches) watch->End();
}

}  // namespace rpc
