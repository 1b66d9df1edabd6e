// Goal: text with gaps comes out as it would have been written by hand,
// whatever the variables hold. Method: the functions themselves.
#include "rpc/compiler/text.h"

#include <google/protobuf/io/printer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>

namespace rpc::compiler {
namespace {

TEST(TextTest, GapsTakeTheirVariablesValues) {
  EXPECT_EQ(Fill({{"a", "one"}, {"b", "two"}}, "<$a$, $b$$a$>"),
            "<one, twoone>");
  EXPECT_EQ(Fill({}, "as it is\n\n  and here\n"), "as it is\n\n  and here\n");
}

TEST(TextTest, FurtherLinesBeginBelowTheFirst) {
  const Variables variables = {{"list", "int a,\nint b"}, {"name", "Get"}};
  EXPECT_EQ(Fill(variables, "void F(\n    $list$);\n"),
            "void F(\n    int a,\n    int b);\n");
  EXPECT_EQ(Fill(variables, "$name$($list$, $list$)"),
            "Get(int a,\n    int b, int a,\n           int b)");
}

TEST(TextTest, LinesWithNothingButEmptyGapsAreLeftOut) {
  EXPECT_EQ(Fill({{"none", ""}}, "{\n  $none$\n\n  x$none$\n}\n"),
            "{\n\n  x\n}\n");
}

TEST(TextTest, ValuesAreNotSearchedForGaps) {
  EXPECT_EQ(Fill({{"a", "$b$"}, {"b", "wrong"}}, "$a$"), "$b$");
}

TEST(TextTest, GapsOfOtherNamesStay) {
  EXPECT_EQ(Fill({{"a", "one"}}, "$a$ $other$ $"), "one $other$ $");
}

TEST(TextTest, PrintedTextKeepsThePrintersIndentation) {
  std::string printed;
  {
    google::protobuf::io::StringOutputStream output(&printed);
    google::protobuf::io::Printer printer(&output, '$');
    printer.Print("{\n");
    printer.Indent();
    PrintText({{"list", "int a,\nint b"}}, "F($list$);\n", printer);
    printer.Outdent();
    printer.Print("}\n");
  }
  EXPECT_EQ(printed, "{\n  F(int a,\n    int b);\n}\n");
}

}  // namespace
}  // namespace rpc::compiler
