// The report for people: devices and what the transport takes of them, what it
// chooses for an address, what is wrong and what to do, and a verdict at the
// end, where the eye is when a program has ended.
#ifndef VERBENA_TOOLS_RDMA_INFO_TEXT_REPORT_H_
#define VERBENA_TOOLS_RDMA_INFO_TEXT_REPORT_H_

#include <string>

#include "tools/rdma_info/diagnose.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// Lines with their ends. Its form may change: programs read the JSON report.
// Pure; thread-safe.
std::string TextReport(const Machine& machine, const Diagnosis& diagnosis);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_TEXT_REPORT_H_
