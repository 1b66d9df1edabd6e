// Statuses with details: messages beside an error's code and text, in the form
// in which gRPC has them, a serialized google.rpc.Status.
//
//   google::rpc::Status details;
//   details.set_code(rpc::StatusCode::RESOURCE_EXHAUSTED);
//   details.set_message("too many keys");
//   details.add_details()->PackFrom(quota);
//   rpc::Status status;
//   rpc::SetErrorDetails(details, &status).IgnoreError();
//   return status;  // of a handler
//
// and at the client:
//
//   google::rpc::Status details;
//   if (rpc::ExtractErrorDetails(status, &details).ok()) { ... }
//
// Not part of rpc.h: a program that wants it depends on //rpc:error_details and
// on //proto/google/rpc:status_cc_proto, or on Google's own google.rpc.Status,
// which is why these are templates.
//
// Thread rule: none; functions of their arguments.
#ifndef VERBENA_RPC_ERROR_DETAILS_H_
#define VERBENA_RPC_ERROR_DETAILS_H_

#include <cstddef>

#include "rpc/status.h"

namespace rpc {
namespace internal {

inline Status NoPlaceForDetails() {
  return Status(StatusCode::FAILED_PRECONDITION, "`to` is null");
}

}  // namespace internal

// `*to` becomes what `from` has as details: an empty message where it has none.
// T is google::rpc::Status. INVALID_ARGUMENT where they are something else,
// FAILED_PRECONDITION where `to` is null.
template <class T>
Status ExtractErrorDetails(const Status& from, T* to) {
  if (to == nullptr) return internal::NoPlaceForDetails();
  if (to->ParseFromString(from.error_details())) return Status::OK;
  return Status(StatusCode::INVALID_ARGUMENT,
                "the status' details are not a google.rpc.Status");
}
inline Status ExtractErrorDetails(const Status& /*from*/, std::nullptr_t) {
  return internal::NoPlaceForDetails();
}

// `*to` gets code and text of `from`, and all of `from` as details. UNKNOWN in
// place of what is not a code.
// FAILED_PRECONDITION where `to` is null.
template <class T>
Status SetErrorDetails(const T& from, Status* to) {
  if (to == nullptr) return internal::NoPlaceForDetails();
  const bool is_code = from.code() >= StatusCode::OK &&
                       from.code() <= StatusCode::UNAUTHENTICATED;
  *to = Status(
      is_code ? static_cast<StatusCode>(from.code()) : StatusCode::UNKNOWN,
      from.message(), from.SerializeAsString());
  return Status::OK;
}

}  // namespace rpc

#endif  // VERBENA_RPC_ERROR_DETAILS_H_
