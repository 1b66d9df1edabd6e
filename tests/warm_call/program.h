// Runs a program to its end, and where asked counts its system calls.
//
// Thread rule: of a process with one thread.
#ifndef VERBENA_TESTS_WARM_CALL_PROGRAM_H_
#define VERBENA_TESTS_WARM_CALL_PROGRAM_H_

#include <string>
#include <vector>

#include "tests/warm_call/tally.h"

namespace warm_call {

struct ProgramResult {
  // As a shell has it; 127: there is no such program.
  int exit_status = 0;
  std::string output;  // of both kinds; at most 64 KiB where it is traced
};

// The program traces itself for us, or exits with this where that is forbidden.
inline constexpr int kCannotTrace = 125;

// The first word is the program, looked for in PATH.
ProgramResult RunProgram(const std::vector<std::string>& words);

// The same; adds to `tally` the system calls that its first thread makes.
ProgramResult RunTraced(const std::vector<std::string>& words, Tally& tally);

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_PROGRAM_H_
