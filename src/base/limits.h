#pragma once

#include <cstddef>
#include <cstdint>

// What files of strangers may hold, in bytes unless it says otherwise: far above what honest ones do, and
// small enough that nothing they hold exhausts a machine.
namespace lamplighter::limits {

// Prompt and caption files, pictures, codes: a million captions of 1,000 bytes; a picture of 16,384 x 16,384
// pixels takes three quarters of it where nothing can be compressed.
inline constexpr std::size_t kInput = std::size_t{1} << 30;

// Tree files: 63 paths take a few kilobytes, what a tuner notes about them as much again.
inline constexpr std::size_t kTree = std::size_t{1} << 20;

// Configuration files: a few dozen flags.
inline constexpr std::size_t kConfig = std::size_t{1} << 20;

// Tables of neighbours: every code of 16,384 beside all others, as published, takes half of it.
inline constexpr std::size_t kTable = std::size_t{1} << 30;

// Texts of a picture, once they are unpacked: all of them together, and how many. Ours take some kilobytes;
// programs that note whole workflows stay below a megabyte.
inline constexpr std::size_t kPngText = std::size_t{16} << 20;
inline constexpr std::size_t kPngTexts = 1000;

// Pixels of a picture's side: keeps the 32-bit sizes of what packs and unpacks PNG files far from overflow.
inline constexpr int kPngSide = 16384;

// Codes of a picture for a decoder whose bundle lists no grids, four times those of the largest pictures that
// published models draw; attention within decoders takes the square of their number.
inline constexpr std::int64_t kCodes = 16384;

}  // namespace lamplighter::limits
