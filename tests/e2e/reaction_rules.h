// What holds for every reactor of a stream, on either side: reactions run one
// at a time, never on the stack of a Start, never within each other, none after
// OnDone, and OnDone once. Reactors of tests say what they do, and what breaks
// a rule fails the test.
//
//   void OnReadDone(bool ok) override {
//     const ReactionRules::Reaction reaction(&rules_, ok ? "read" : "no read");
//     ...
//     const ReactionRules::Start start(&rules_);
//     StartRead(&message_);
//   }
//
// Thread rule: any thread.
#ifndef VERBENA_TESTS_E2E_REACTION_RULES_H_
#define VERBENA_TESTS_E2E_REACTION_RULES_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace e2e {

class ReactionRules {
 public:
  // For the stack of a Start: holds a lock that every reaction takes, as users'
  // locks are.
  class ABSL_SCOPED_LOCKABLE Start {
   public:
    explicit Start(ReactionRules* rules)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(rules->users_lock_);
    ~Start() ABSL_UNLOCK_FUNCTION();
    Start(const Start&) = delete;
    Start& operator=(const Start&) = delete;

   private:
    ReactionRules& rules_;
  };

  // For the stack of a reaction. The rules may go before it where it is the
  // last.
  class Reaction {
   public:
    Reaction(ReactionRules* rules, std::string what, bool last = false);
    ~Reaction();
    Reaction(const Reaction&) = delete;
    Reaction& operator=(const Reaction&) = delete;

   private:
    ReactionRules* const rules_;  // null: the last
  };

  // What was said so far.
  std::vector<std::string> log() const;

 private:
  absl::Mutex users_lock_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
  bool reacting_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_REACTION_RULES_H_
