#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lamplighter/lamplighter.h"

// What Python and the engine hand to each other. Functions that make Python objects need the interpreter's
// lock.
namespace lamplighter::python {

using CodeArray = pybind11::array_t<std::int32_t, pybind11::array::c_style | pybind11::array::forcecast>;
using PixelArray = pybind11::array_t<std::uint8_t, pybind11::array::c_style | pybind11::array::forcecast>;

pybind11::array pixels_of(const Image& image);  // [height, width, 3]
pybind11::array codes_of(const std::vector<std::int32_t>& ids, std::size_t rows,
                         int columns);                     // [rows, columns]
pybind11::array tokens_per_pass_of(const Result& result);  // int64 [rows, columns]
pybind11::dict statistics_of(const Statistics& statistics);

Image image_of(const PixelArray& pixels);  // [height, width, 3]
Codes codes_in(const CodeArray& codes);    // [rows, columns]; other dimensions are an Error

}  // namespace lamplighter::python
