#include "rpc/internal/header_block.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/internal/received_metadata.h"

namespace rpc::internal {
namespace {

struct Entry {
  HeaderKind kind;
  std::string key;
  std::string value;
};

std::vector<Entry> ReadAll(HeaderBlockReader& reader) {
  std::vector<Entry> entries;
  HeaderEntry entry;
  while (reader.Next(&entry)) {
    entries.push_back(
        {entry.kind, std::string(entry.key), std::string(entry.value)});
  }
  return entries;
}

absl::Span<const std::byte> AsBytes(const std::string& bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()),
                             bytes.size());
}

TEST(HeaderBlockTest, ExampleOfTheSpecification) {
  std::string block;
  HeaderBlockWriter writer(&block);
  writer.Add(HeaderKind::kInitialMetadata, "user", "ada");
  writer.Add(HeaderKind::kStatusMessage, "", "not there");
  EXPECT_EQ(block, std::string("\x01\x04"
                               "user\x03"
                               "ada\x03\x09not there"));
}

TEST(HeaderBlockTest, LengthsAroundEachByteCount) {
  for (const size_t length :
       {0u, 1u, 127u, 128u, 16383u, 16384u, 2097151u, 2097152u}) {
    std::string block;
    HeaderBlockWriter(&block).Add(HeaderKind::kInitialMetadata, "key",
                                  std::string(length, 'v'));
    HeaderBlockReader reader(block);
    const std::vector<Entry> entries = ReadAll(reader);
    ASSERT_TRUE(reader.status().ok());
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].key, "key");
    EXPECT_EQ(entries[0].value.size(), length);
  }
}

TEST(HeaderBlockTest, EmptyBlockHasNoEntries) {
  HeaderBlockReader reader{std::string_view()};
  EXPECT_TRUE(ReadAll(reader).empty());
  EXPECT_TRUE(reader.status().ok());
}

TEST(HeaderBlockTest, MalformedBlocks) {
  const std::string kMalformed[] = {
      std::string("\x00", 1),           // no kind
      "\x05",                           // reserved kinds
      "\x7f",                           //
      "\x01",                           // no key
      "\x01\x80",                       // a length that is cut off
      "\x01\x03ke",                     // a key that is cut off
      "\x01\x03key",                    // no value
      "\x01\x03key\x02v",               // a value that is cut off
      "\x03\xff\xff\xff\xff\x10",       // 33 bits
      "\x03\xff\xff\xff\xff\xff\x01",   // six bytes
      "\x03\xff\xff\xff\xff\x0f",       // 4 GiB that are not there
      "\x80\x05xyz",                    // cut off, though skippable
      std::string("\x03\x01x\x04", 4),  // a good one before
  };
  for (const std::string& block : kMalformed) {
    HeaderBlockReader reader(block);
    ReadAll(reader);
    EXPECT_EQ(reader.status().error_code(), StatusCode::INTERNAL) << block;
  }
}

// Random entries come back as they were written.
TEST(HeaderBlockTest, RandomEntriesComeBack) {
  std::mt19937_64 random(20240229);
  for (int round = 0; round < 2000; ++round) {
    std::string block;
    std::vector<Entry> expected;
    HeaderBlockWriter writer(&block);
    const int count = static_cast<int>(random() % 6);
    for (int i = 0; i < count; ++i) {
      Entry entry;
      entry.kind = static_cast<HeaderKind>(1 + random() % 4);
      if (entry.kind <= HeaderKind::kTrailingMetadata) {
        entry.key.assign(random() % 40, static_cast<char>(random()));
      }
      entry.value.assign(random() % 300, static_cast<char>(random()));
      writer.Add(entry.kind, entry.key, entry.value);
      expected.push_back(entry);
    }
    HeaderBlockReader reader(block);
    const std::vector<Entry> entries = ReadAll(reader);
    ASSERT_TRUE(reader.status().ok());
    ASSERT_EQ(entries.size(), expected.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(entries[i].kind, expected[i].kind);
      EXPECT_EQ(entries[i].key, expected[i].key);
      EXPECT_EQ(entries[i].value, expected[i].value);
    }
  }
}

// Any bytes at all end in entries or a status, and are never read beyond: each
// block has memory of exactly its size, which AddressSanitizer watches.
TEST(HeaderBlockTest, RandomBytesAreSafe) {
  std::mt19937_64 random(4711);
  std::string seed;
  HeaderBlockWriter writer(&seed);
  writer.Add(HeaderKind::kInitialMetadata, "user", "ada");
  writer.Add(HeaderKind::kTrailingMetadata, "token-bin", "\x00\xff\x01");
  writer.Add(HeaderKind::kStatusMessage, "", "text");
  writer.Add(HeaderKind::kStatusDetails, "", std::string(200, 'd'));
  int malformed = 0;
  for (int round = 0; round < 200000; ++round) {
    std::string bytes;
    if (round % 2 == 0) {
      bytes.resize(random() % 24);
      for (char& byte : bytes) byte = static_cast<char>(random());
    } else {
      bytes = seed.substr(0, random() % (seed.size() + 1));
      for (uint64_t flips = random() % 4; flips > 0 && !bytes.empty();
           --flips) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
    }
    const std::vector<char> exact(bytes.begin(), bytes.end());
    ReceivedMetadata metadata;
    const auto from = static_cast<ReceivedMetadata::From>(random() % 3);
    const Status status = metadata.Add(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(exact.data()),
                            exact.size()),
        from, true, 8192);
    malformed += status.ok() ? 0 : 1;
    for (const auto& [key, value] : metadata.initial()) {
      if (status.ok()) {
        ASSERT_TRUE(CheckMetadataEntry(key, value).ok());
      }
    }
  }
  EXPECT_GT(malformed, 1000);
  EXPECT_LT(malformed, 199000);
}

// ---- ReceivedMetadata ----

TEST(ReceivedMetadataTest, ViewsOutliveTheBlock) {
  ReceivedMetadata metadata;
  for (int i = 0; i < 10; ++i) {
    std::string block;
    HeaderBlockWriter(&block).Add(HeaderKind::kInitialMetadata,
                                  "key" + std::to_string(i),
                                  "value" + std::to_string(i));
    ASSERT_TRUE(metadata
                    .Add(AsBytes(block), ReceivedMetadata::From::kServer, true,
                         kDefaultMaxMetadataBytes)
                    .ok());
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(metadata.initial().find("key" + std::to_string(i))->second,
              "value" + std::to_string(i));
  }
}

TEST(ReceivedMetadataTest, LimitCountsPairsAndText) {
  // 3 + 10 + 32 bytes for the pair.
  std::string block;
  HeaderBlockWriter writer(&block);
  writer.Add(HeaderKind::kTrailingMetadata, "key", std::string(10, 'v'));
  const auto add = [&](size_t limit) {
    ReceivedMetadata metadata;
    return metadata
        .Add(AsBytes(block), ReceivedMetadata::From::kServerEnd, true, limit)
        .error_code();
  };
  EXPECT_EQ(add(45), StatusCode::OK);
  EXPECT_EQ(add(44), StatusCode::RESOURCE_EXHAUSTED);
  writer.Add(HeaderKind::kStatusMessage, "", "text");
  writer.Add(HeaderKind::kStatusDetails, "", "details");
  EXPECT_EQ(add(56), StatusCode::OK);
  EXPECT_EQ(add(55), StatusCode::RESOURCE_EXHAUSTED);
}

TEST(ReceivedStatusTest, CodesTextAndDetails) {
  EXPECT_TRUE(ReceivedStatus(0, nullptr).ok());
  EXPECT_EQ(ReceivedStatus(5, nullptr).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(ReceivedStatus(17, nullptr).error_code(), StatusCode::UNKNOWN);
  EXPECT_EQ(ReceivedStatus(UINT32_MAX, nullptr).error_code(),
            StatusCode::UNKNOWN);
}

}  // namespace
}  // namespace rpc::internal
