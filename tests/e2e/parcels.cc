#include "tests/e2e/parcels.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace e2e {
namespace {

// Starts no field of a message.
constexpr char kNoField = '\xff';

}  // namespace

const char* MethodOf(RpcType type) {
  switch (type) {
    case RpcType::NORMAL_RPC:
      return "Unary";
    case RpcType::CLIENT_STREAMING:
      return "Upload";
    case RpcType::SERVER_STREAMING:
      return "Download";
    case RpcType::BIDI_STREAMING:
      return "Chat";
  }
  return "";
}

std::string NameOfType(const testing::TestParamInfo<RpcType>& info) {
  return MethodOf(info.param);
}

bool Names(const rpc::Status& status, const std::string& text) {
  return absl::StrContains(status.error_message(), text);
}

Parcel ParcelOf(size_t content_bytes) {
  Parcel parcel;
  parcel.mutable_content()->set_data(std::string(content_bytes, 'c'));
  return parcel;
}

Parcel ParcelFor(int responses, size_t response_bytes) {
  Parcel parcel;
  parcel.set_responses(responses);
  parcel.set_response_bytes(static_cast<int32_t>(response_bytes));
  return parcel;
}

Forgery ForgeryOf(size_t bytes) {
  Forgery forgery;
  forgery.set_content(std::string(std::max<size_t>(bytes, 1), kNoField));
  return forgery;
}

void Fill(const Parcel& request, int index, Parcel* response) {
  const bool good = index < request.good_responses();
  *response =
      ParcelOf(good ? 0 : static_cast<size_t>(request.response_bytes()));
}

void Fill(const Parcel& request, int index, Forgery* response) {
  if (index < request.good_responses()) {
    response->clear_content();
  } else {
    *response = ForgeryOf(static_cast<size_t>(request.response_bytes()));
  }
}

rpc::Status EndOf(const Parcel& request) {
  return rpc::Status(static_cast<rpc::StatusCode>(request.code()), "early");
}

}  // namespace e2e
