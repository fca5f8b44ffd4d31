#include <algorithm>
#include <cstring>
#include <regex>

#include "acceptance/neighbours.h"
#include "base/files.h"

namespace lamplighter {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

struct Header {
  std::int64_t rows = 0, columns = 0;
  std::size_t data = 0;  // where the values start
};

// numpy/lib/format.py: magic, version, header length (2 bytes in version 1, 4 later), a Python dictionary.
Header read_header(const std::string& bytes, const std::string& path, ExitCode code) {
  const auto fail = [&](const std::string& what) { throw Error(code, path + ": " + what); };
  const auto size = [&]() -> std::size_t { return bytes.size() > 7 && bytes[6] == 1 ? 2 : 4; };
  if (bytes.compare(0, kMagic.size(), kMagic) != 0 || bytes.size() < 8 + size()) {
    fail("not a .npy file");
  }
  const std::size_t length = little_endian(std::string_view(bytes).substr(8, size()));
  Header header;
  header.data = 8 + size() + length;
  if (header.data > bytes.size()) fail("the .npy header is cut off");
  const std::string text = bytes.substr(8 + size(), std::min<std::size_t>(length, 4096));
  static const std::regex kType("'descr'\\s*:\\s*'([^']*)'"), kOrder("'fortran_order'\\s*:\\s*False"),
      kShape("'shape'\\s*:\\s*\\(\\s*(\\d{1,6})\\s*,\\s*(\\d{1,6})\\s*,?\\s*\\)");
  const auto find = [&](const std::regex& pattern) {
    std::smatch match;
    std::regex_search(text, match, pattern);
    return match;
  };
  const std::smatch dtype = find(kType);
  if (dtype.empty() || dtype[1] != "<u2") {
    fail("got dtype " + (dtype.empty() ? std::string("none") : dtype[1].str()) + ", expected <u2 (uint16)");
  }
  if (find(kOrder).empty()) fail("expected C order (fortran_order False)");
  const std::smatch shape = find(kShape);
  if (shape.empty()) fail("expected a shape of two dimensions [codes, neighbours]");
  header.rows = std::stoll(shape[1]);
  header.columns = std::stoll(shape[2]);
  return header;
}

}  // namespace

NeighbourTable read_npy_neighbours(const std::string& path, std::int64_t k, ExitCode code) {
  const std::string bytes = read_file(path, code, limits::kTable);
  const Header header = read_header(bytes, path, code);
  const std::size_t expected = static_cast<std::size_t>(header.rows) *
                               static_cast<std::size_t>(header.columns) * sizeof(std::uint16_t);
  if (bytes.size() - header.data != expected) {
    throw Error(code, path + ": got " + std::to_string(bytes.size() - header.data) +
                          " bytes of values, expected " + std::to_string(expected));
  }
  if (header.rows < 2 || header.rows > 65536 || header.columns < 1 || k > header.columns) {
    throw Error(code, path + ": got a table of " + std::to_string(header.rows) + " x " +
                          std::to_string(header.columns) + ", expected 2 to 65536 codes with at least " +
                          std::to_string(std::max<std::int64_t>(k, 1)) + " neighbours");
  }
  NeighbourTable table;
  table.codes = header.rows;
  table.width = k > 0 ? k : header.columns;
  table.ids.resize(static_cast<std::size_t>(table.codes * table.width));
  for (std::int64_t row = 0; row < table.codes; ++row) {
    const std::size_t from =
        header.data + static_cast<std::size_t>(row * header.columns) * sizeof(std::uint16_t);
    std::memcpy(table.ids.data() + row * table.width, bytes.data() + from,
                static_cast<std::size_t>(table.width) * sizeof(std::uint16_t));
  }
  check_neighbours(table, path, code);
  return table;
}

}  // namespace lamplighter
