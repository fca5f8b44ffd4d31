#pragma once

#include <cstddef>
#include <cstdint>

// Size limits for untrusted input, in bytes unless stated otherwise. They are far above real files, and small
// enough to protect a machine's memory.
namespace lamplighter::limits {

// Prompt files, caption files, images, codes. A million captions of 1,000 bytes fit; an incompressible image
// of 16,384 x 16,384 pixels takes three quarters.
inline constexpr std::size_t kInput = std::size_t{1} << 30;

// Tree files. 63 paths take a few kilobytes, the notes of tune-tree as much again.
inline constexpr std::size_t kTree = std::size_t{1} << 20;

// Manifests of bundles. Recorded calls, vocabularies and lists of files take some hundred kilobytes.
inline constexpr std::size_t kManifest = std::size_t{16} << 20;

// Tokenizers. The largest published ones take some 20 megabytes.
inline constexpr std::size_t kTokenizer = std::size_t{256} << 20;

// Configuration files, which hold a few dozen flags.
inline constexpr std::size_t kConfig = std::size_t{1} << 20;

// Tables of nearest codes. The published table, all pairs of 16,384 codes, takes half of it.
inline constexpr std::size_t kTable = std::size_t{1} << 30;

// Unpacked text chunks of an image: total size and number. Ours take a few kilobytes; other programs store
// workflows below a megabyte.
inline constexpr std::size_t kPngText = std::size_t{16} << 20;
inline constexpr std::size_t kPngTexts = 1000;

// Pixels per side of an image. Keeps 32-bit sizes in image code far from overflow.
inline constexpr int kImageSide = 16384;

// Pixels of an image that is read, 67 million: as in the largest photographs of most cameras. Of 16-bit files
// each takes up to 20 bytes of memory.
inline constexpr std::uint64_t kImagePixels = std::uint64_t{1} << 26;

// Passes over the pixels of a progressive JPEG file. Usual ones have 10; each takes time for all pixels, and
// few bytes may be enough for one.
inline constexpr int kJpegScans = 100;

// Codes of an image for a decoder whose bundle lists no grids: four times the largest images of published
// models. Attention inside decoders takes quadratic memory.
inline constexpr std::int64_t kCodes = 16384;

}  // namespace lamplighter::limits
