// A server's reactors that do as functions say, and keep to reaction_rules.h,
// and a service whose handlers are functions that give them.
//
//   ReactorService service;
//   ServerReactor<rpc::ServerWriteReactor<Parcel>> reactor;
//   service.download = [&](auto*, const Parcel*) {
//     reactor.WriteAndFinish(&response, rpc::Status::OK);
//     return &reactor;
//   };
//   ... a call ...
//   reactor.Wait();
//   EXPECT_THAT(reactor.log(), ElementsAre("done"));
//
// Thread rule: as a reactor; functions are set while their reactions cannot
// run, or by them.
#ifndef VERBENA_TESTS_E2E_SERVER_REACTORS_H_
#define VERBENA_TESTS_E2E_SERVER_REACTORS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "rpc/rpc.h"
#include "tests/e2e/parcels.rpc.pb.h"
#include "tests/e2e/reaction_rules.h"

namespace e2e {

// `Base`: one of the four kinds.
template <class Base>
class ServerReactor : public Base {
 public:
  using Function = std::function<void(bool ok)>;
  Function on_metadata = [](bool) {};
  Function on_read = [](bool) {};
  Function on_write = [](bool) {};
  std::function<void()> on_cancel = [] {};
  std::function<void()> on_done = [] {};

  void SendMetadata() {
    const ReactionRules::Start start(&rules_);
    this->StartSendInitialMetadata();
  }
  template <class... Arguments>
  void Read(Arguments&&... arguments) {
    const ReactionRules::Start start(&rules_);
    this->StartRead(std::forward<Arguments>(arguments)...);
  }
  template <class Message>
  void Write(const Message* message) {
    const ReactionRules::Start start(&rules_);
    this->StartWrite(message);
  }
  template <class Message>
  void WriteLast(const Message* message) {
    const ReactionRules::Start start(&rules_);
    this->StartWriteLast(message, rpc::WriteOptions());
  }
  template <class Message>
  void WriteAndFinish(const Message* message, rpc::Status status) {
    const ReactionRules::Start start(&rules_);
    this->StartWriteAndFinish(message, rpc::WriteOptions(), std::move(status));
  }
  void End(rpc::Status status) {
    const ReactionRules::Start start(&rules_);
    this->Finish(std::move(status));
  }

  // Until OnDone.
  void Wait() const { done_.WaitForNotification(); }
  bool is_done() const { return done_.HasBeenNotified(); }
  // "metadata", "read", "write", each with "no " in front where it was not ok,
  // "cancel" and "done".
  std::vector<std::string> log() const { return rules_.log(); }

 private:
  void OnSendInitialMetadataDone(bool ok) override {
    React("metadata", ok, on_metadata);
  }
  // Of streams.
  virtual void OnReadDone(bool ok) { React("read", ok, on_read); }
  virtual void OnWriteDone(bool ok) { React("write", ok, on_write); }
  void OnCancel() override {
    const ReactionRules::Reaction reaction(&rules_, "cancel");
    on_cancel();
  }
  void OnDone() override {
    // It may destroy this.
    const std::function<void()> last = on_done;
    {
      const ReactionRules::Reaction reaction(&rules_, "done", /*last=*/true);
      done_.Notify();
    }
    last();
  }
  void React(const char* what, bool ok, const Function& function) {
    const ReactionRules::Reaction reaction(
        &rules_, ok ? what : std::string("no ") + what);
    // It may set another one.
    const Function now = function;
    now(ok);
  }

  ReactionRules rules_;
  absl::Notification done_;
};

using ServerUnary = ServerReactor<rpc::ServerUnaryReactor>;
using ServerRead = ServerReactor<rpc::ServerReadReactor<Parcel>>;
using ServerWrite = ServerReactor<rpc::ServerWriteReactor<Parcel>>;
using ServerBidi = ServerReactor<rpc::ServerBidiReactor<Parcel, Parcel>>;

// A function that one thread sets and others call, who see what was written
// before it was set: the wire between them is no synchronization to a
// sanitizer.
template <class Signature>
class SharedFunction {
 public:
  SharedFunction& operator=(std::function<Signature> function) {
    absl::MutexLock lock(&mutex_);
    function_ = std::move(function);
    return *this;
  }
  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    std::function<Signature> function;
    {
      absl::MutexLock lock(&mutex_);
      function = function_;
    }
    return function(arguments...);
  }

 private:
  absl::Mutex mutex_;
  std::function<Signature> function_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe, as services are.
class ReactorService final : public Parcels::CallbackService {
 public:
  using Context = rpc::CallbackServerContext;
  SharedFunction<rpc::ServerUnaryReactor*(Context*, const Parcel*, Parcel*)>
      unary;
  SharedFunction<rpc::ServerReadReactor<Parcel>*(Context*, Parcel*)> upload;
  SharedFunction<rpc::ServerWriteReactor<Parcel>*(Context*, const Parcel*)>
      download;
  SharedFunction<rpc::ServerBidiReactor<Parcel, Parcel>*(Context*)> chat;

 private:
  rpc::ServerUnaryReactor* Unary(Context* context, const Parcel* request,
                                 Parcel* response) override {
    return unary(context, request, response);
  }
  rpc::ServerReadReactor<Parcel>* Upload(Context* context,
                                         Parcel* response) override {
    return upload(context, response);
  }
  rpc::ServerWriteReactor<Parcel>* Download(Context* context,
                                            const Parcel* request) override {
    return download(context, request);
  }
  rpc::ServerBidiReactor<Parcel, Parcel>* Chat(Context* context) override {
    return chat(context);
  }
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_SERVER_REACTORS_H_
