#include "rpc/server_builder_option.h"

#include <type_traits>
#include <utility>

namespace rpc {
namespace {

template <class T>
class ChannelArgumentOption final : public ServerBuilderOption {
 public:
  using Setter = void (ChannelArguments::*)(const std::string&, T);

  ChannelArgumentOption(Setter set, std::string name,
                        std::remove_cvref_t<T> value)
      : set_(set), name_(std::move(name)), value_(std::move(value)) {}

  void UpdateArguments(ChannelArguments* arguments) override {
    (arguments->*set_)(name_, value_);
  }
  void UpdatePlugins(
      std::vector<std::unique_ptr<ServerBuilderPlugin>>*) override {}

 private:
  const Setter set_;
  const std::string name_;
  const std::remove_cvref_t<T> value_;
};

}  // namespace

std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, const std::string& value) {
  return std::make_unique<ChannelArgumentOption<const std::string&>>(
      &ChannelArguments::SetString, name, value);
}

std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, int value) {
  return MakeChannelArgumentOption(name, int64_t{value});
}

std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, int64_t value) {
  return std::make_unique<ChannelArgumentOption<int64_t>>(
      &ChannelArguments::SetInt64, name, value);
}

std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, void* value) {
  return std::make_unique<ChannelArgumentOption<void*>>(
      &ChannelArguments::SetPointer, name, value);
}

}  // namespace rpc
