#include "tests/e2e/reaction_rules.h"

#include <utility>

#include "gtest/gtest.h"

namespace e2e {
namespace {

// Of this thread, and any stream.
thread_local int starts = 0;
thread_local int reactions = 0;

}  // namespace

ReactionRules::Start::Start(ReactionRules* rules) : rules_(*rules) {
  rules_.users_lock_.Lock();
  ++starts;
}

ReactionRules::Start::~Start() {
  --starts;
  rules_.users_lock_.Unlock();
}

ReactionRules::Reaction::Reaction(ReactionRules* rules, std::string what,
                                  bool last)
    : rules_(last ? nullptr : rules) {
  // Else the lock below would be one's own.
  EXPECT_EQ(starts, 0) << what << " on the stack of a Start";
  EXPECT_EQ(reactions, 0) << what << " within another reaction";
  ++reactions;
  if (starts == 0) {
    absl::MutexLock users_lock(&rules->users_lock_);
  }
  absl::MutexLock lock(&rules->mutex_);
  EXPECT_FALSE(rules->reacting_) << what << " beside another reaction";
  EXPECT_FALSE(rules->ended_) << what << " after OnDone";
  rules->reacting_ = !last;
  rules->ended_ = last;
  rules->log_.push_back(std::move(what));
}

ReactionRules::Reaction::~Reaction() {
  --reactions;
  if (rules_ == nullptr) return;
  absl::MutexLock lock(&rules_->mutex_);
  rules_->reacting_ = false;
}

std::vector<std::string> ReactionRules::log() const {
  absl::MutexLock lock(&mutex_);
  return log_;
}

}  // namespace e2e
