// The mock of a service's stub: a class for gmock that implements
// StubInterface.
//
//   class MockFooStub : public Foo::StubInterface {
//     MOCK_METHOD(...)  one for each virtual function
//   };
//
// Thread rule: a pure function; a Printer belongs to one thread.
#ifndef VERBENA_RPC_COMPILER_MOCK_PRINTER_H_
#define VERBENA_RPC_COMPILER_MOCK_PRINTER_H_

#include "google/protobuf/io/printer.h"
#include "rpc/compiler/model.h"

namespace rpc::compiler {

// The class, for the header with the mocks.
void PrintMockStub(const ServiceModel& service,
                   google::protobuf::io::Printer& printer);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_MOCK_PRINTER_H_
