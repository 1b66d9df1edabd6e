// How scale_bench prints: for people a table for each part, for programs JSON,
// one object a line; the summary last.
//
//   ScaleReport report(/*json=*/true, stdout);
//   report.Print("idle_cpu", "1000 connections", {{"server_percent", 0.2}});
//   report.SetSummary("idle_cpu_percent", 0.2);
//   report.PrintSummary();
//
// Thread rule: one thread at a time.
#ifndef VERBENA_BENCHMARKS_SCALE_REPORT_H_
#define VERBENA_BENCHMARKS_SCALE_REPORT_H_

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace benchmarks {

// Of an even number of values, the mean of the two in the middle; 0 of none.
double Median(std::vector<double> values);

class ScaleReport {
 public:
  using Figures = std::vector<std::pair<std::string, double>>;

  ScaleReport(bool json, std::FILE* out) : json_(json), out_(out) {}

  // Lines of one part have the same figures, and come one after the other.
  void Print(const std::string& part, const std::string& what,
             const Figures& figures);
  void SetSummary(const std::string& name, double value);
  void PrintSummary();

 private:
  const bool json_;
  std::FILE* const out_;
  std::string last_part_;
  nlohmann::ordered_json summary_ = nlohmann::ordered_json::object();
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_SCALE_REPORT_H_
