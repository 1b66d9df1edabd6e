// Goal: every failure of a device, by completion or by errno, becomes a status
// whose code says what to do next and whose text a user can act on.
// Method: the tables row by row, and all values that there are.
#include <infiniband/verbs.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rdma_transport/wc_status.h"

namespace rdma {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(WcStatusTest, SuccessIsOk) {
  EXPECT_TRUE(WcStatusToStatus(IBV_WC_SUCCESS, "a send").ok());
}

TEST(WcStatusTest, CodesSayWhetherTryingAgainMakesSense) {
  const std::pair<ibv_wc_status, absl::StatusCode> rows[] = {
      // This side's or the protocol's fault: trying again changes nothing.
      {IBV_WC_LOC_LEN_ERR, absl::StatusCode::kInternal},
      {IBV_WC_LOC_QP_OP_ERR, absl::StatusCode::kInternal},
      {IBV_WC_LOC_PROT_ERR, absl::StatusCode::kInternal},
      {IBV_WC_MW_BIND_ERR, absl::StatusCode::kInternal},
      {IBV_WC_BAD_RESP_ERR, absl::StatusCode::kInternal},
      {IBV_WC_LOC_ACCESS_ERR, absl::StatusCode::kInternal},
      {IBV_WC_REM_INV_REQ_ERR, absl::StatusCode::kInternal},
      // The connection or the peer went away: another one may do.
      {IBV_WC_WR_FLUSH_ERR, absl::StatusCode::kUnavailable},
      {IBV_WC_REM_ACCESS_ERR, absl::StatusCode::kUnavailable},
      {IBV_WC_REM_OP_ERR, absl::StatusCode::kUnavailable},
      {IBV_WC_RETRY_EXC_ERR, absl::StatusCode::kUnavailable},
      {IBV_WC_RNR_RETRY_EXC_ERR, absl::StatusCode::kUnavailable},
      {IBV_WC_FATAL_ERR, absl::StatusCode::kUnavailable},
      {IBV_WC_RESP_TIMEOUT_ERR, absl::StatusCode::kUnavailable},
  };
  for (const auto& [status, code] : rows) {
    const absl::Status result = WcStatusToStatus(status, "a send");
    EXPECT_EQ(result.code(), code) << ibv_wc_status_str(status);
    EXPECT_THAT(TextOf(result), Not(HasSubstr("ibv_poll_cq")))
        << "what RC can give has words of its own";
  }
}

TEST(WcStatusTest, EveryStatusIsAnErrorThatNamesItself) {
  for (int value = IBV_WC_SUCCESS + 1; value <= IBV_WC_TM_RNDV_INCOMPLETE;
       ++value) {
    const auto status = static_cast<ibv_wc_status>(value);
    const absl::Status result = WcStatusToStatus(status, "reading an offer");
    EXPECT_FALSE(result.ok());
    EXPECT_THAT(TextOf(result), AllOf(HasSubstr("reading an offer: "),
                                      HasSubstr(ibv_wc_status_str(status))));
  }
}

TEST(WcStatusTest, AStatusOfTheFutureIsInternal) {
  EXPECT_EQ(WcStatusToStatus(static_cast<ibv_wc_status>(9999), "a send").code(),
            absl::StatusCode::kInternal);
}

TEST(VerbsErrorTest, CodesSayWhatToDoNext) {
  const std::pair<int, absl::StatusCode> rows[] = {
      {ENOMEM, absl::StatusCode::kResourceExhausted},
      {ENOSPC, absl::StatusCode::kResourceExhausted},
      {EMFILE, absl::StatusCode::kResourceExhausted},
      {ENFILE, absl::StatusCode::kResourceExhausted},
      {EAGAIN, absl::StatusCode::kResourceExhausted},
      {EINVAL, absl::StatusCode::kInvalidArgument},
      {EBUSY, absl::StatusCode::kFailedPrecondition},
      {EPERM, absl::StatusCode::kPermissionDenied},
      {EACCES, absl::StatusCode::kPermissionDenied},
      {EOPNOTSUPP, absl::StatusCode::kUnimplemented},
      {ENOSYS, absl::StatusCode::kUnimplemented},
      {ENODEV, absl::StatusCode::kUnavailable},
      {EIO, absl::StatusCode::kUnavailable},
  };
  for (const auto& [error, code] : rows) {
    EXPECT_EQ(VerbsError("ibv_reg_mr", error).code(), code) << strerror(error);
  }
}

TEST(VerbsErrorTest, EveryErrnoIsAnErrorThatNamesCallAndCause) {
  for (int error = 1; error < 134; ++error) {
    const absl::Status status = VerbsError("ibv_create_qp", error, "depth 256");
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(TextOf(status),
                AllOf(HasSubstr("ibv_create_qp: "), HasSubstr(strerror(error)),
                      HasSubstr("depth 256")));
  }
}

// Under a limit on locked memory, every errno that may mean it names the limit
// and the remedy; without one, the remedy is another.
TEST(VerbsErrorTest, RegistrationNamesTheLimitOnLockedMemory) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = std::min<rlim_t>(before.rlim_max, 64 * 1024);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limited), 0);
  const std::string kib = absl::StrCat(limited.rlim_cur / 1024, " KiB");
  for (const int error : {ENOMEM, EAGAIN, EPERM}) {
    const absl::Status status = RegistrationError(error, 1 << 20);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(TextOf(status),
                AllOf(HasSubstr("ibv_reg_mr: "), HasSubstr("1048576 bytes"),
                      HasSubstr(kib), HasSubstr("ulimit -l unlimited")));
  }
  EXPECT_EQ(RegistrationError(EINVAL, 1).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(VerbsErrorTest, ReadsAsOneSentence) {
  EXPECT_EQ(TextOf(VerbsError("ibv_reg_mr", ENOMEM, "64 MiB")),
            "ibv_reg_mr: Cannot allocate memory, 64 MiB: raise RLIMIT_MEMLOCK "
            "(ulimit -l) or lower the memory budget");
  EXPECT_EQ(TextOf(VerbsError("ibv_reg_mr", EINVAL)),
            "ibv_reg_mr: Invalid argument");
}

}  // namespace
}  // namespace rdma
