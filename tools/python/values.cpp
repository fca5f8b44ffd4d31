#include "tools/python/values.h"

#include <pybind11/stl.h>

#include "base/format.h"

namespace py = pybind11;

namespace lamplighter::python {

py::array pixels_of(const Image& image) {
  return py::array_t<std::uint8_t>(std::vector<py::ssize_t>{image.height, image.width, 3},
                                   image.pixels.data());
}

py::array codes_of(const std::vector<std::int32_t>& ids, std::size_t rows, int columns) {
  return CodeArray(std::vector<py::ssize_t>{static_cast<py::ssize_t>(rows), columns}, ids.data());
}

py::array tokens_per_pass_of(const Result& result) {
  const std::vector<std::int64_t> tokens = tokens_per_pass(result);
  return py::array_t<std::int64_t>(std::vector<py::ssize_t>{result.codes.rows, result.codes.columns},
                                   tokens.data());
}

Image image_of(const PixelArray& pixels) {
  return {static_cast<int>(pixels.shape(1)),
          static_cast<int>(pixels.shape(0)),
          {pixels.data(), pixels.data() + pixels.size()}};
}

Codes codes_in(const CodeArray& codes) {
  if (codes.ndim() != 2)
    throw Error(ExitCode::input,
                "codes: got " + counted(codes.ndim(), "dimension") + ", expected 2: rows and columns");
  return {static_cast<int>(codes.shape(0)),
          static_cast<int>(codes.shape(1)),
          {codes.data(), codes.data() + codes.size()}};
}

py::dict statistics_of(const Statistics& s) {
  std::vector<std::int64_t> committed;
  for (const Cycle& cycle : s.cycles) committed.push_back(cycle.committed);
  const auto seconds = [](double ms) { return ms / 1000; };
  using namespace py::literals;
  return py::dict(
      "tokens"_a = s.tokens, "target_passes"_a = s.target_passes, "batch"_a = s.batch,
      "step_compression"_a = s.step_compression(), "acceptance_length"_a = s.acceptance_length(),
      "acceptance_lengths"_a = committed, "drafted_by_depth"_a = s.drafted,
      "accepted_by_depth"_a = s.accepted,
      "seconds"_a = py::dict("text"_a = seconds(s.text_ms), "prefill"_a = seconds(s.prefill_ms),
                             "decode"_a = seconds(s.decode_ms), "image"_a = seconds(s.image_ms),
                             "draft"_a = seconds(s.draft_ms), "score"_a = seconds(s.score_ms),
                             "verify"_a = seconds(s.verify_ms), "commit"_a = seconds(s.commit_ms)));
}

}  // namespace lamplighter::python
