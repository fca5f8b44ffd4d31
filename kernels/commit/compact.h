#pragma once

#include <cstdint>

namespace lamplighter {

// compact_cache: after a tree of rows was verified, moves the keys and values of the accepted ones next to
// the committed prefix, in place and in every layer: cache row lengths[s] + path[i][j] -> lengths[s] + j for
// j = 1..count[i], i the image of sequence s. Other rows keep their bits.
// path[i][0..count[i]] starts with 0 (the root, in place already) and rises, so that no row is overwritten
// before it is read. count 0 or -1 (a finished image) moves nothing; path is not read then.
struct CompactArgs {
  void* cache;             // [planes, sequences, kv_heads, slots, row_bytes], planes = layers * 2
  const int64_t* lengths;  // [sequences], committed rows
  const int64_t* path;     // [images, width]
  const int64_t* count;    // [images], accepted drafted nodes, below width
  int64_t planes;
  int64_t sequences;
  int64_t kv_heads;
  int64_t slots;
  int64_t row_bytes;
  int64_t images;
  int64_t sequences_per_image;  // 1, or 2 for interleaved conditional/unconditional pairs
  int64_t width;
};

// Queued on `stream` (a cudaStream_t) as one launch, without reading device memory on the host. Rows that
// would leave the cache are skipped.
void compact_cuda(const CompactArgs& args, void* stream);

}  // namespace lamplighter
