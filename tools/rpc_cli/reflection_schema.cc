#include "tools/rpc_cli/reflection_schema.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/rpc_cli/reflection_database.h"

namespace rpc_cli {
namespace {

using google::protobuf::DescriptorPool;

// Keeps the first mistake that protobuf finds in a server's files.
class FirstError final : public DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file, const std::string& element,
                const google::protobuf::Message*, ErrorLocation,
                const std::string& message) override {
    if (!error_.ok()) return;
    error_ = absl::InternalError(absl::StrCat(
        "the server's file ", file, " is wrong at ", element, ": ", message));
  }

  const absl::Status& error() const { return error_; }

 private:
  absl::Status error_;
};

class ReflectionSchema final : public Schema {
 public:
  ReflectionSchema(std::shared_ptr<rpc::ChannelInterface> channel,
                   ReflectionOptions options)
      : database_(std::move(channel), std::move(options)) {}

  absl::StatusOr<std::vector<std::string>> ServiceNames() override {
    return database_.ServiceNames();
  }
  const DescriptorPool* pool() const override { return &pool_; }
  // The reason before its consequences.
  absl::Status LookupError() const override {
    return database_.error().ok() ? wrong_files_.error() : database_.error();
  }

 private:
  ReflectionDatabase database_;
  FirstError wrong_files_;
  DescriptorPool pool_{&database_, &wrong_files_};
};

}  // namespace

std::unique_ptr<Schema> MakeReflectionSchema(
    std::shared_ptr<rpc::ChannelInterface> channel, ReflectionOptions options) {
  return std::make_unique<ReflectionSchema>(std::move(channel),
                                            std::move(options));
}

}  // namespace rpc_cli
