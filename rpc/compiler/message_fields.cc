#include "rpc/compiler/message_fields.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/compiler/cpp/names.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/wire_format_lite.h"
#include "rpc/compiler/names.h"
#include "rpc/compiler/text.h"

namespace rpc::compiler {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::FieldOptions;
using ::google::protobuf::FileDescriptor;
using ::google::protobuf::compiler::cpp::FieldName;
using ::google::protobuf::compiler::cpp::QualifiedClassName;
using ::google::protobuf::internal::WireFormatLite;
using ::google::protobuf::io::Printer;

// What FieldReader and FieldWriter can do.
constexpr int kMostFields = 64;
constexpr int kMaxNumber = 2047;

// Elsewhere numbers that the enum does not have are unknown fields.
bool TakesAnyValue(const FieldDescriptor& field) {
  return field.enum_type() == nullptr ||
         (field.file()->syntax() == FileDescriptor::SYNTAX_PROTO3 &&
          field.enum_type()->file()->syntax() == FileDescriptor::SYNTAX_PROTO3);
}

bool IsSimple(const FieldDescriptor& field) {
  return !field.is_repeated() && !field.is_required() &&
         field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE &&
         TakesAnyValue(field) && field.number() <= kMaxNumber &&
         field.options().ctype() == FieldOptions::STRING;
}

bool IsText(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

// The functions of FieldReader and FieldWriter: "Sfixed32" of sfixed32.
std::string FunctionOf(const FieldDescriptor& field) {
  std::string name = field.type_name();
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

uint32_t TagOf(const FieldDescriptor& field) {
  return WireFormatLite::MakeTag(
      field.number(),
      WireFormatLite::WireTypeForFieldType(
          static_cast<WireFormatLite::FieldType>(field.type())));
}

bool IsDeprecated(const FieldDescriptor& field) {
  return field.options().deprecated() ||
         (field.enum_type() != nullptr &&
          field.enum_type()->options().deprecated());
}

FieldModel BuildField(const FieldDescriptor& field) {
  FieldModel model;
  model.number = field.number();
  model.tag = TagOf(field);
  model.name = FieldName(&field);
  model.function = FunctionOf(field);
  model.has_presence = field.has_presence();
  model.is_text = IsText(field);
  if (field.enum_type() != nullptr) {
    model.enum_type = QualifiedClassName(field.enum_type());
  }
  return model;
}

void PrintWrite(const FieldModel& field, Printer& printer) {
  PrintText(
      {{"name", field.name},
       {"condition", field.has_presence
                         ? absl::StrCat("message.has_", field.name, "()")
                         : absl::StrCat("IsSet(message.", field.name, "())")},
       {"Function", field.function},
       {"number", absl::StrCat(field.number)}},
      R"(if ($condition$) {
  writer.$Function$($number$, message.$name$());
}
)",
      printer);
}

// `index`: among the message's fields.
void PrintRead(const FieldModel& field, size_t index, Printer& printer) {
  const std::string reader =
      absl::StrCat("reader.Saw(", index, ").", field.function);
  const std::string value =
      field.is_text
          ? absl::StrCat(reader, "(message.mutable_", field.name, "())")
          : absl::StrCat("message.set_", field.name, "(",
                         field.enum_type.empty()
                             ? absl::StrCat(reader, "()")
                             : absl::StrCat("static_cast<", field.enum_type,
                                            ">(", reader, "())"),
                         ")");
  PrintText({{"tag", absl::StrCat(field.tag)}, {"value", value}},
            R"(case $tag$:
  return $value$;
)",
            printer);
}

std::string Hex(uint64_t bits) {
  return absl::StrCat("0x", absl::Hex(bits), "u");
}

void PrintClearUnseen(const MessageModel& message, Printer& printer) {
  const size_t count = message.fields.size();
  printer.Print(R"(static constexpr uint64_t kAll = $all$;
static void ClearUnseen([[maybe_unused]] uint64_t seen,
                        [[maybe_unused]] $Message$& message) {
)",
                "all", Hex(count == 0 ? 0 : ~uint64_t{0} >> (64 - count)),
                "Message", message.type);
  printer.Indent();
  for (size_t i = 0; i < count; ++i) {
    printer.Print("if ((seen & $bit$) == 0) message.clear_$name$();\n", "bit",
                  Hex(uint64_t{1} << i), "name", message.fields[i].name);
  }
  printer.Outdent();
  printer.Print("}\n");
}

}  // namespace

std::optional<MessageModel> BuildMessage(const Descriptor& message) {
  MessageModel model;
  model.type = QualifiedClassName(&message);
  model.guard = FieldsGuard(message.full_name());
  model.deprecated = message.options().deprecated();
  if (message.field_count() > kMostFields ||
      message.extension_range_count() != 0 ||
      message.options().message_set_wire_format() ||
      message.options().map_entry()) {
    return std::nullopt;
  }
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (!IsSimple(field)) return std::nullopt;
    model.deprecated = model.deprecated || IsDeprecated(field);
    model.fields.push_back(BuildField(field));
  }
  std::sort(model.fields.begin(), model.fields.end(),
            [](const FieldModel& a, const FieldModel& b) {
              return a.number < b.number;
            });
  return model;
}

void PrintFieldsOf(const MessageModel& message, Printer& printer) {
  // Another file's source may have it, too, and be compiled as one with this.
  printer.Print("#ifndef $guard$\n#define $guard$\n", "guard", message.guard);
  if (message.deprecated) {
    printer.Print(R"(#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
)");
  }
  printer.Print(R"(template <>
struct FieldsOf<$Message$> {
  static void Write([[maybe_unused]] const $Message$& message,
                    [[maybe_unused]] FieldWriter& writer) {
)",
                "Message", message.type);
  printer.Indent();
  printer.Indent();
  for (const FieldModel& field : message.fields) PrintWrite(field, printer);
  printer.Outdent();
  printer.Print(R"(}
static void Read(uint32_t tag, FieldReader& reader,
                 [[maybe_unused]] $Message$& message) {
  switch (tag) {
)",
                "Message", message.type);
  printer.Indent();
  printer.Indent();
  for (size_t i = 0; i < message.fields.size(); ++i) {
    PrintRead(message.fields[i], i, printer);
  }
  printer.Print("default:\n  return reader.GiveUp();\n");
  printer.Outdent();
  printer.Print("}\n");
  printer.Outdent();
  printer.Print("}\n");
  PrintClearUnseen(message, printer);
  printer.Outdent();
  printer.Print("};\n");
  if (message.deprecated) printer.Print("#pragma GCC diagnostic pop\n");
  printer.Print("#endif  // $guard$\n", "guard", message.guard);
}

}  // namespace rpc::compiler
