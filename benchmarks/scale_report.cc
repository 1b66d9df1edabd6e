#include "benchmarks/scale_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace benchmarks {
namespace {

constexpr char kCase[] = "%-44s";
constexpr char kColumn[] = " %16s";

// Five digits are more than was measured; JSON is to be read, too.
double Rounded(double value) {
  return std::stod(absl::StrFormat("%.5g", value));
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

void ScaleReport::Print(const std::string& part, const std::string& what,
                        const Figures& figures) {
  if (json_) {
    nlohmann::ordered_json line = {{"part", part}, {"case", what}};
    for (const auto& [name, value] : figures) line[name] = Rounded(value);
    absl::FPrintF(out_, "%s\n", line.dump());
  } else {
    if (part != last_part_) {
      absl::FPrintF(out_, "\n");
      absl::FPrintF(out_, kCase, part);
      for (const auto& figure : figures) {
        absl::FPrintF(out_, kColumn, figure.first);
      }
      absl::FPrintF(out_, "\n");
    }
    absl::FPrintF(out_, kCase, what);
    for (const auto& figure : figures) {
      absl::FPrintF(out_, kColumn, absl::StrFormat("%.5g", figure.second));
    }
    absl::FPrintF(out_, "\n");
  }
  last_part_ = part;
  std::fflush(out_);
}

void ScaleReport::SetSummary(const std::string& name, double value) {
  summary_[name] = Rounded(value);
}

void ScaleReport::PrintSummary() {
  if (!json_) absl::FPrintF(out_, "\n");
  absl::FPrintF(out_, "%s\n",
                nlohmann::ordered_json{{"summary", summary_}}.dump());
  std::fflush(out_);
}

}  // namespace benchmarks
