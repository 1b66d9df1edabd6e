// Streams for tests of code that uses stubs: gmock's, of the classes of
// sync_stream.h, async_stream.h and async_unary_call.h.
//
//   auto* reader = new rpc::testing::MockClientReader<Feature>();
//   EXPECT_CALL(*reader, Read(_)).WillOnce(Return(false));
//   EXPECT_CALL(stub, ListFeaturesRaw(_, _)).WillOnce(Return(reader));
//
// Thread rule: gmock's.
#ifndef VERBENA_RPC_TEST_MOCK_STREAM_H_
#define VERBENA_RPC_TEST_MOCK_STREAM_H_

#include <cstdint>

#include "gmock/gmock.h"
#include "rpc/async_stream.h"
#include "rpc/async_unary_call.h"
#include "rpc/status.h"
#include "rpc/sync_stream.h"
#include "rpc/write_options.h"

namespace rpc::testing {

// ---- The blocking API, client.

template <class R>
class MockClientReader : public ClientReaderInterface<R> {
 public:
  MOCK_METHOD(Status, Finish, (), (override));
  MOCK_METHOD(bool, NextMessageSize, (uint32_t*), (override));
  MOCK_METHOD(bool, Read, (R*), (override));
  MOCK_METHOD(void, WaitForInitialMetadata, (), (override));
};

template <class W>
class MockClientWriter : public ClientWriterInterface<W> {
 public:
  using internal::WriterInterface<W>::Write;
  MOCK_METHOD(Status, Finish, (), (override));
  MOCK_METHOD(bool, Write, (const W&, WriteOptions), (override));
  MOCK_METHOD(bool, WritesDone, (), (override));
};

template <class W, class R>
class MockClientReaderWriter : public ClientReaderWriterInterface<W, R> {
 public:
  using internal::WriterInterface<W>::Write;
  MOCK_METHOD(Status, Finish, (), (override));
  MOCK_METHOD(bool, NextMessageSize, (uint32_t*), (override));
  MOCK_METHOD(bool, Read, (R*), (override));
  MOCK_METHOD(bool, Write, (const W&, WriteOptions), (override));
  MOCK_METHOD(void, WaitForInitialMetadata, (), (override));
  MOCK_METHOD(bool, WritesDone, (), (override));
};

// ---- The asynchronous API, client.

template <class R>
class MockClientAsyncResponseReader
    : public ClientAsyncResponseReaderInterface<R> {
 public:
  MOCK_METHOD(void, StartCall, (), (override));
  MOCK_METHOD(void, ReadInitialMetadata, (void*), (override));
  MOCK_METHOD(void, Finish, (R*, Status*, void*), (override));
};

template <class R>
class MockClientAsyncReader : public ClientAsyncReaderInterface<R> {
 public:
  MOCK_METHOD(void, StartCall, (void*), (override));
  MOCK_METHOD(void, ReadInitialMetadata, (void*), (override));
  MOCK_METHOD(void, Finish, (Status*, void*), (override));
  MOCK_METHOD(void, Read, (R*, void*), (override));
};

template <class W>
class MockClientAsyncWriter : public ClientAsyncWriterInterface<W> {
 public:
  MOCK_METHOD(void, StartCall, (void*), (override));
  MOCK_METHOD(void, ReadInitialMetadata, (void*), (override));
  MOCK_METHOD(void, Finish, (Status*, void*), (override));
  MOCK_METHOD(void, Write, (const W&, void*), (override));
  MOCK_METHOD(void, Write, (const W&, WriteOptions, void*), (override));
  MOCK_METHOD(void, WritesDone, (void*), (override));
};

template <class W, class R>
class MockClientAsyncReaderWriter
    : public ClientAsyncReaderWriterInterface<W, R> {
 public:
  MOCK_METHOD(void, StartCall, (void*), (override));
  MOCK_METHOD(void, ReadInitialMetadata, (void*), (override));
  MOCK_METHOD(void, Finish, (Status*, void*), (override));
  MOCK_METHOD(void, Write, (const W&, void*), (override));
  MOCK_METHOD(void, Write, (const W&, WriteOptions, void*), (override));
  MOCK_METHOD(void, Read, (R*, void*), (override));
  MOCK_METHOD(void, WritesDone, (void*), (override));
};

// ---- The blocking API, server.

template <class R>
class MockServerReader : public ServerReaderInterface<R> {
 public:
  MOCK_METHOD(void, SendInitialMetadata, (), (override));
  MOCK_METHOD(bool, NextMessageSize, (uint32_t*), (override));
  MOCK_METHOD(bool, Read, (R*), (override));
};

template <class W>
class MockServerWriter : public ServerWriterInterface<W> {
 public:
  using internal::WriterInterface<W>::Write;
  MOCK_METHOD(void, SendInitialMetadata, (), (override));
  MOCK_METHOD(bool, Write, (const W&, WriteOptions), (override));
};

template <class W, class R>
class MockServerReaderWriter : public ServerReaderWriterInterface<W, R> {
 public:
  using internal::WriterInterface<W>::Write;
  MOCK_METHOD(void, SendInitialMetadata, (), (override));
  MOCK_METHOD(bool, NextMessageSize, (uint32_t*), (override));
  MOCK_METHOD(bool, Read, (R*), (override));
  MOCK_METHOD(bool, Write, (const W&, WriteOptions), (override));
};

}  // namespace rpc::testing

#endif  // VERBENA_RPC_TEST_MOCK_STREAM_H_
