#include "base/line_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "base/descriptor.h"

namespace lamplighter {
namespace {

struct Pipe {
  Descriptor out{-1}, in{-1};
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
  }
  // All that comes until the other end is closed or the text is there.
  std::string read(const std::string& until = "") const {
    std::string text;
    std::array<char, 4096> piece{};
    while (until.empty() || text.find(until) == std::string::npos) {
      const ssize_t got = ::read(out.get(), piece.data(), piece.size());
      if (got <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
};

TEST(LineWriterTest, WritesLinesInOrder) {
  Pipe pipe;
  {
    LineWriter writer(pipe.in.get());
    writer.add("first");
    writer.add(std::string(20'000, 'x'));
    writer.add("last");
  }
  pipe.in.close();
  EXPECT_EQ(pipe.read(), "first\n" + std::string(20'000, 'x') + "\nlast\n");
}

TEST(LineWriterTest, NobodyWaitsForAReader) {
  Pipe pipe;
  auto writer = std::make_unique<LineWriter>(pipe.in.get());
  const auto since = std::chrono::steady_clock::now();
  constexpr int count = 5000;
  for (int i = 0; i < count; ++i) writer->add(std::string(100, 'x'));
  const std::string text = pipe.read("were dropped: nobody read them");
  EXPECT_LT(text.size(), count * 101U);
  for (int i = 0; i < count; ++i) writer->add(std::string(100, 'y'));
  writer.reset();  // nobody reads
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(10));
}

TEST(LineWriterTest, AReaderThatHasGoneEndsNothing) {
  Pipe pipe;
  pipe.out.close();
  LineWriter writer(pipe.in.get());
  for (int i = 0; i < 10; ++i) writer.add("line");
}

}  // namespace
}  // namespace lamplighter
