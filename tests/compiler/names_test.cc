// Goal: every service and method gets C++ names that compile, and different
// ones stay different. Method: the functions themselves; that the results
// compile is shown by generated_code_test.
#include "rpc/compiler/names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rpc::compiler {
namespace {

TEST(NamesTest, OrdinaryNamesStay) {
  EXPECT_EQ(MethodFunctionName("Get"), "Get");
  EXPECT_EQ(MethodFunctionName("get_value2"), "get_value2");
  EXPECT_EQ(ServiceClassName("KeyValue"), "KeyValue");
  // Taken in one place is not taken in the other.
  EXPECT_EQ(MethodFunctionName("NewStub"), "NewStub");
  EXPECT_EQ(ServiceClassName("async"), "async");
}

TEST(NamesTest, KeywordsGetAnUnderscore) {
  for (const char* keyword :
       {"alignas", "and", "class", "co_await", "concept", "delete", "int",
        "new", "requires", "xor_eq", "NULL"}) {
    EXPECT_TRUE(IsReservedByCpp(keyword)) << keyword;
    EXPECT_EQ(MethodFunctionName(keyword), std::string(keyword) + "_");
    EXPECT_EQ(ServiceClassName(keyword), std::string(keyword) + "_");
  }
  EXPECT_FALSE(IsReservedByCpp("Delete"));
  EXPECT_FALSE(IsReservedByCpp("classes"));
}

TEST(NamesTest, MembersOfTheGeneratedClassesGetAnUnderscore) {
  EXPECT_EQ(MethodFunctionName("async"), "async_");
  EXPECT_EQ(MethodFunctionName("coro"), "coro_");
  EXPECT_EQ(MethodFunctionName("coro_interface"), "coro_interface_");
  EXPECT_EQ(MethodFunctionName("coro_stub_"), "coro_stub__");
  EXPECT_EQ(MethodFunctionName("Stub"), "Stub_");
  EXPECT_EQ(MethodFunctionName("channel_"), "channel__");
  EXPECT_EQ(MethodFunctionName("BaseClass"), "BaseClass_");
  EXPECT_EQ(MethodFunctionName("rpcmethod_0_"), "rpcmethod_0__");
  EXPECT_EQ(ServiceClassName("Service"), "Service_");
  EXPECT_EQ(ServiceClassName("CoroutineService"), "CoroutineService_");
  EXPECT_EQ(ServiceClassName("Stub"), "Stub_");
}

TEST(NamesTest, MocksAreNamedAfterTheServicesClass) {
  EXPECT_EQ(MockClassName(ServiceClassName("KeyValue")), "MockKeyValueStub");
  EXPECT_EQ(MockClassName(ServiceClassName("Stub")), "MockStub_Stub");
}

TEST(NamesTest, IncludeGuardsAreIdentifiersAndDiffer) {
  std::set<std::string> guards;
  for (const char* path : {"a/b.proto", "a_b.proto", "a/b_proto", "a.b.proto",
                           "a-b.proto", "a_2fb.proto", "_a.proto", "ä.proto"}) {
    for (const std::string& guard :
         {IncludeGuard(path), MockIncludeGuard(path)}) {
      EXPECT_TRUE(guards.insert(guard).second) << path << " " << guard;
      EXPECT_EQ(guard.find("__"), std::string::npos) << guard;
      EXPECT_EQ(guard.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                        "abcdefghijklmnopqrstuvwxyz0123456789"),
                std::string::npos)
          << guard;
    }
  }
}

}  // namespace
}  // namespace rpc::compiler
