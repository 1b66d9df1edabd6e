#include "tools/rpc_cli/proto_file_schema.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/compiler/importer.h"
#include "google/protobuf/descriptor_database.h"

namespace rpc_cli {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::compiler::DiskSourceTree;

class ErrorLines final
    : public google::protobuf::compiler::MultiFileErrorCollector {
 public:
  void AddError(const std::string& file, int line, int column,
                const std::string& message) override {
    // They count from 0; -1 is the whole file.
    const std::string place =
        line < 0 ? file : absl::StrCat(file, ":", line + 1, ":", column + 1);
    lines_.push_back(absl::StrCat(place, ": ", message));
  }

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

class ProtoFileSchema final : public Schema {
 public:
  explicit ProtoFileSchema(const std::vector<std::string>& import_paths)
      : import_paths_(import_paths) {
    if (import_paths_.empty()) import_paths_.push_back(".");
    for (const std::string& path : import_paths_) tree_.MapPath("", path);
    files_.RecordErrorsTo(&errors_);
  }

  absl::Status Load(const std::string& file) {
    std::string name;
    std::string shadowing;
    switch (tree_.DiskFileToVirtualFile(file, &name, &shadowing)) {
      case DiskSourceTree::SUCCESS:
        break;
      case DiskSourceTree::SHADOWED:
        return absl::InvalidArgumentError(
            absl::StrCat(file, ": ", shadowing,
                         " has the same name and comes before it in the "
                         "import paths"));
      case DiskSourceTree::CANNOT_OPEN:
      case DiskSourceTree::NO_MAPPING:
        name = file;  // as another file would import it
    }
    const FileDescriptor* descriptor = pool_.FindFileByName(name);
    if (descriptor == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(absl::StrJoin(errors_.lines(), "\n"),
                       "\n(looked for in ", absl::StrJoin(import_paths_, ", "),
                       "; -import-path DIR says where ", "else)"));
    }
    for (int i = 0; i < descriptor->service_count(); ++i) {
      services_.push_back(descriptor->service(i)->full_name());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> ServiceNames() override {
    std::vector<std::string> names = services_;
    std::sort(names.begin(), names.end());
    return names;
  }
  const DescriptorPool* pool() const override { return &pool_; }

 private:
  std::vector<std::string> import_paths_;
  std::vector<std::string> services_;
  ErrorLines errors_;
  DiskSourceTree tree_;
  // Protobuf's own files are linked.
  google::protobuf::DescriptorPoolDatabase linked_{
      *DescriptorPool::generated_pool()};
  google::protobuf::compiler::SourceTreeDescriptorDatabase files_{&tree_,
                                                                  &linked_};
  DescriptorPool pool_{&files_, files_.GetValidationErrorCollector()};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Schema>> LoadProtoFiles(
    const std::vector<std::string>& files,
    const std::vector<std::string>& import_paths) {
  auto schema = std::make_unique<ProtoFileSchema>(import_paths);
  for (const std::string& file : files) {
    absl::Status status = schema->Load(file);
    if (!status.ok()) return status;
  }
  return schema;
}

}  // namespace rpc_cli
