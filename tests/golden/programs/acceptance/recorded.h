#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/safetensors.h"
#include "tests/reference/verify.h"

// A recorded case: case.json and io.safetensors of one folder.
namespace lamplighter::reference {

using Integers = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

inline double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction > 0 ? std::numeric_limits<double>::quiet_NaN()
                        : sign * std::numeric_limits<double>::infinity();
  }
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

class Recorded {
 public:
  explicit Recorded(const std::string& folder)
      : folder_(folder),
        info_(parse_json(read_file(folder + "/case.json"), folder + "/case.json", ExitCode::input)),
        tensors_(Safetensors::read(folder + "/io.safetensors", ExitCode::input)) {}

  const Json& info() const { return info_; }
  const std::string& folder() const { return folder_; }
  bool has(const std::string& name) const { return tensors_.tensors().count(name) != 0; }
  const std::vector<std::int64_t>& shape(const std::string& name) const { return tensors_.at(name).shape; }

  // Names after the prefix `prefix`.
  std::vector<std::string> names(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const auto& [name, view] : tensors_.tensors()) {
      if (name.rfind(prefix, 0) == 0) found.push_back(name.substr(prefix.size()));
    }
    return found;
  }

  Integers integers(const std::string& name) const { return read<std::int64_t>(name); }
  Doubles doubles(const std::string& name) const { return read<double>(name); }

  // A row of a tensor whose first dimension runs over scenarios.
  Integers integers(const std::string& name, std::size_t row) const {
    return row_of(integers(name), name, row);
  }
  Doubles doubles(const std::string& name, std::size_t row) const { return row_of(doubles(name), name, row); }

  // A matrix as rows.
  std::vector<Doubles> rows(const std::string& name) const {
    const Doubles all = doubles(name);
    std::vector<Doubles> rows;
    for (std::int64_t i = 0; i < shape(name).at(0); ++i) {
      rows.push_back(row_of(all, name, static_cast<std::size_t>(i)));
    }
    return rows;
  }

 private:
  template <class Value, class Stored>
  static std::vector<Value> convert(std::string_view bytes) {
    std::vector<Value> values(bytes.size() / sizeof(Stored));
    for (std::size_t i = 0; i < values.size(); ++i) {
      Stored stored;
      std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
      values[i] = static_cast<Value>(stored);
    }
    return values;
  }

  template <class Value>
  std::vector<Value> read(const std::string& name) const {
    const TensorView& view = tensors_.at(name);
    const std::string& dtype = view.dtype;
    if (dtype == "F32") return convert<Value, float>(view.bytes);
    if (dtype == "F64") return convert<Value, double>(view.bytes);
    if (dtype == "I8") return convert<Value, std::int8_t>(view.bytes);
    if (dtype == "I16") return convert<Value, std::int16_t>(view.bytes);
    if (dtype == "I32") return convert<Value, std::int32_t>(view.bytes);
    if (dtype == "I64") return convert<Value, std::int64_t>(view.bytes);
    if (dtype == "U8" || dtype == "BOOL") return convert<Value, std::uint8_t>(view.bytes);
    if (dtype == "U16") return convert<Value, std::uint16_t>(view.bytes);
    if (dtype == "U32") return convert<Value, std::uint32_t>(view.bytes);
    if (dtype == "U64") return convert<Value, std::uint64_t>(view.bytes);
    if (dtype == "F16") {
      std::vector<Value> values;
      for (const std::uint16_t bits : convert<std::uint16_t, std::uint16_t>(view.bytes)) {
        values.push_back(static_cast<Value>(half_to_double(bits)));
      }
      return values;
    }
    throw Error(ExitCode::input, folder_ + ": " + name + ": unknown dtype " + dtype);
  }

  template <class Value>
  std::vector<Value> row_of(const std::vector<Value>& all, const std::string& name, std::size_t row) const {
    const auto count = static_cast<std::size_t>(shape(name).at(0));
    if (row >= count) throw Error(ExitCode::input, folder_ + ": " + name + ": no row " + std::to_string(row));
    const auto width = static_cast<std::ptrdiff_t>(all.size() / count);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row) * width;
    return {begin, begin + width};
  }

  std::string folder_;
  Json info_;
  Safetensors tensors_;
};

// Compares values, and keeps the first deviation of every scenario.
class Report {
 public:
  void scenario(const std::string& name) {
    name_ = name;
    failed_ = false;
    ++scenarios_;
  }

  void fail(const std::string& what) {
    if (failed_) return;
    failed_ = true;
    ++failures_;
    std::cerr << name_ << ": " << what << "\n";
  }

  template <class Value>
  void equal(const std::string& what, const Value& got, const Value& expected) {
    if (got != expected) fail(what + ": got " + text(got) + ", expected " + text(expected));
  }

  void close(const std::string& what, double got, double expected, double tolerance) {
    if (got == expected || (std::isnan(got) && std::isnan(expected))) return;
    if (!(std::abs(got - expected) <= tolerance)) {
      fail(what + ": got " + text(got) + ", expected " + text(expected) + " within " + text(tolerance));
    }
  }

  void close(const std::string& what, const Doubles& got, const Doubles& expected, double tolerance) {
    equal(what + ": size", got.size(), expected.size());
    for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
      close(what + "[" + std::to_string(i) + "]", got[i], expected[i], tolerance);
    }
  }

  // Skips the scenario; the summary reports it.
  void leave_out(const std::string& why) {
    ++left_out_;
    reason_ = why;
  }

  // Returns 0 if all scenarios agree.
  int summary() const {
    std::cout << scenarios_ << " scenarios, " << failures_ << " deviate";
    if (left_out_ > 0) std::cout << ", " << left_out_ << " left out (" << reason_ << ")";
    std::cout << "\n";
    return failures_ > 0 || scenarios_ == 0 ? 1 : 0;
  }

 private:
  template <class Value>
  static std::string text(const Value& value) {
    std::ostringstream out;
    out.precision(9);
    out << value;
    return out.str();
  }
  template <class Value>
  static std::string text(const std::vector<Value>& values) {
    std::string all;
    for (const Value& value : values) all += (all.empty() ? "" : ", ") + text(value);
    return "[" + all + "]";
  }

  std::string name_;
  std::string reason_;
  bool failed_ = false;
  int scenarios_ = 0, failures_ = 0, left_out_ = 0;
};

// The leading values that are not padding (-1).
inline Integers unpadded(Integers values) {
  while (!values.empty() && values.back() == -1) values.pop_back();
  return values;
}

inline NeighbourTable table_of(const Recorded& recorded, const std::string& name) {
  const Integers values = recorded.integers(name);
  const std::vector<std::int64_t>& shape = recorded.shape(name);
  NeighbourTable table{shape.at(0), shape.at(1), {}};
  for (const std::int64_t value : values) table.ids.push_back(static_cast<std::uint16_t>(value));
  return table;
}

}  // namespace lamplighter::reference
