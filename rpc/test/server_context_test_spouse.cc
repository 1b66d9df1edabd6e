#include "rpc/test/server_context_test_spouse.h"

#include "rpc/test/received_pair.h"

namespace rpc::testing {

void ServerContextTestSpouse::AddClientMetadata(const std::string& key,
                                                const std::string& value) {
  AddReceivedPair(internal::ReceivedMetadata::From::kClient, key, value,
                  context_.received_);
}

std::multimap<std::string, std::string>
ServerContextTestSpouse::GetInitialMetadata() const {
  if (context_.sent_ == nullptr) return {};
  return context_.sent_->initial;
}

std::multimap<std::string, std::string>
ServerContextTestSpouse::GetTrailingMetadata() const {
  if (context_.sent_ == nullptr) return {};
  return context_.sent_->trailing;
}

}  // namespace rpc::testing
