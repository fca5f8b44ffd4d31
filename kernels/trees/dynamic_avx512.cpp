#include "kernels/trees/dynamic_rows.h"

namespace lamplighter {
namespace {
struct Local {};
}  // namespace

void expand_rows_avx512(const ExpandArgs& args, int64_t begin, int64_t end, void* scratch) {
  dynamic::expand_rows<Local>(args, begin, end, scratch);
}

}  // namespace lamplighter
