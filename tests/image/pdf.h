#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "base/inflate.h"

// Reads parts of PDF files that to_pdf writes.
namespace lamplighter::test {

// Offsets in the table of objects, without the free one.
inline std::vector<std::size_t> pdf_offsets(const std::string& pdf) {
  const std::string mark = "startxref\n";
  const std::size_t table = std::strtoul(pdf.c_str() + pdf.rfind(mark) + mark.size(), nullptr, 10);
  if (pdf.compare(table, 7, "xref\n0 ") != 0) return {};
  const std::size_t entries = std::strtoul(pdf.c_str() + table + 7, nullptr, 10);
  std::size_t at = pdf.find('\n', table + 7) + 1;
  std::vector<std::size_t> offsets;
  for (std::size_t i = 1; i < entries; ++i) {
    at += 20;  // an entry
    offsets.push_back(std::strtoul(pdf.substr(at, 10).c_str(), nullptr, 10));
  }
  return offsets;
}

// The unpacked stream of the first object whose entries hold `mark`.
inline std::string pdf_stream(const std::string& pdf, const std::string& mark) {
  const std::string length = "/Length ", begin = "stream\n";
  const std::size_t at = pdf.find(length, pdf.find(mark)) + length.size();
  const std::size_t size = std::strtoul(pdf.c_str() + at, nullptr, 10);
  const std::string packed = pdf.substr(pdf.find(begin, at) + begin.size(), size);
  return inflate_text(packed, std::size_t{1} << 24U, Packing::zlib).value_or("");
}

// The operators of the page.
inline std::string pdf_content(const std::string& pdf) {
  return pdf_stream(pdf, "4 0 obj");
}

}  // namespace lamplighter::test
