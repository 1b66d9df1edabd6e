// A client's reactors that do as functions say, and keep to reaction_rules.h.
//
//   Reactor<rpc::ClientReadReactor<Parcel>> reactor;
//   reactor.on_read = [&](bool ok) { if (ok) reactor.Read(&response); };
//   stub->async()->Download(&context, &request, &reactor);
//   reactor.Read(&response);
//   reactor.Start();
//   EXPECT_OK(reactor.Wait());
//
// Thread rule: as a reactor; functions are set while their reactions cannot
// run, or by them.
#ifndef VERBENA_TESTS_E2E_CLIENT_REACTORS_H_
#define VERBENA_TESTS_E2E_CLIENT_REACTORS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "rpc/rpc.h"
#include "tests/e2e/reaction_rules.h"

namespace e2e {

// `Base`: one of the three kinds.
template <class Base>
class Reactor : public Base {
 public:
  using Function = std::function<void(bool ok)>;
  Function on_metadata = [](bool) {};
  Function on_read = [](bool) {};
  Function on_write = [](bool) {};
  Function on_writes_done = [](bool) {};
  std::function<void(const rpc::Status&)> on_done = [](const rpc::Status&) {};

  void Start() {
    const ReactionRules::Start start(&rules_);
    this->StartCall();
  }
  template <class... Arguments>
  void Read(Arguments&&... arguments) {
    const ReactionRules::Start start(&rules_);
    this->StartRead(std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  void Write(Arguments&&... arguments) {
    const ReactionRules::Start start(&rules_);
    this->StartWrite(std::forward<Arguments>(arguments)...);
  }
  template <class Message>
  void WriteLast(const Message* message) {
    const ReactionRules::Start start(&rules_);
    this->StartWriteLast(message, rpc::WriteOptions());
  }
  void WritesDone() {
    const ReactionRules::Start start(&rules_);
    this->StartWritesDone();
  }
  void Release() {
    const ReactionRules::Start start(&rules_);
    this->RemoveHold();
  }
  // As a user who holds a lock meanwhile.
  void Cancel(rpc::ClientContext& context) {
    const ReactionRules::Start start(&rules_);
    context.TryCancel();
  }

  // How it ended.
  rpc::Status Wait() {
    done_.WaitForNotification();
    return status_;
  }
  bool is_done() const { return done_.HasBeenNotified(); }
  // "metadata", "read", "write", "writes done", each with "no " in front where
  // it was not ok, and "done".
  std::vector<std::string> log() const { return rules_.log(); }

 private:
  void OnReadInitialMetadataDone(bool ok) override {
    React("metadata", ok, on_metadata);
  }
  void OnReadDone(bool ok) override { React("read", ok, on_read); }
  void OnWriteDone(bool ok) override { React("write", ok, on_write); }
  void OnWritesDoneDone(bool ok) override {
    React("writes done", ok, on_writes_done);
  }
  void OnDone(const rpc::Status& status) override {
    const ReactionRules::Reaction reaction(&rules_, "done", /*last=*/true);
    status_ = status;
    on_done(status);
    // The test may destroy this now.
    done_.Notify();
  }
  void React(const char* what, bool ok, const Function& function) {
    const ReactionRules::Reaction reaction(
        &rules_, ok ? what : std::string("no ") + what);
    // It may set another one.
    const Function now = function;
    now(ok);
  }

  ReactionRules rules_;
  rpc::Status status_;
  absl::Notification done_;
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_CLIENT_REACTORS_H_
