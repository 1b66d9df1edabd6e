#include "rpc/status.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace rpc {
namespace {

TEST(StatusTest, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_code(), StatusCode::OK);
  EXPECT_EQ(status.error_message(), "");
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_TRUE(Status::OK.ok());
  EXPECT_EQ(Status::CANCELLED.error_code(), StatusCode::CANCELLED);
}

TEST(StatusTest, CopiesAndMoves) {
  const Status original(StatusCode::NOT_FOUND, "gone", "details");
  Status copy = original;
  EXPECT_EQ(copy.error_message(), "gone");
  copy = Status(StatusCode::ABORTED, "lost");
  EXPECT_EQ(original.error_message(), "gone");
  const Status moved = std::move(copy);
  EXPECT_EQ(moved.error_code(), StatusCode::ABORTED);
  EXPECT_EQ(moved.error_message(), "lost");
  copy = original;
  EXPECT_EQ(copy.error_details(), "details");
  const Status& alias = copy;
  copy = alias;
  EXPECT_EQ(copy.error_details(), "details");
}

TEST(StatusTest, OkMayHaveText) {
  const Status status(StatusCode::OK, "text", "details");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_message(), "text");
  EXPECT_EQ(status.error_details(), "details");
  EXPECT_TRUE(status.ToAbslStatus().ok());
}

TEST(StatusTest, ToAbslAndBack) {
  for (int code = 1; code <= 16; ++code) {
    const Status status(static_cast<StatusCode>(code), "text",
                        std::string("a\0b", 3));
    const absl::Status there = status.ToAbslStatus();
    EXPECT_EQ(static_cast<int>(there.code()), code);
    EXPECT_EQ(there.message(), "text");
    const Status back = there;
    EXPECT_EQ(back.error_code(), status.error_code());
    EXPECT_EQ(back.error_message(), "text");
    EXPECT_EQ(back.error_details(), status.error_details());
    EXPECT_EQ(StatusCodeName(status.error_code()),
              absl::StatusCodeToString(there.code()));
  }
  EXPECT_TRUE(Status(absl::OkStatus()).ok());
  EXPECT_TRUE(static_cast<absl::Status>(Status()).ok());
}

Status Handler() { return absl::NotFoundError("as absl says it"); }

TEST(StatusTest, HandlersMayReturnAbslStatus) {
  EXPECT_EQ(Handler().error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Handler().ToString(), "NOT_FOUND: as absl says it");
}

TEST(StatusTest, NameOfNoCode) {
  EXPECT_STREQ(StatusCodeName(static_cast<StatusCode>(99)), "UNKNOWN");
  EXPECT_STREQ(StatusCodeName(static_cast<StatusCode>(-1)), "UNKNOWN");
}

}  // namespace
}  // namespace rpc
