#include "kernels/sampling_rows.h"

namespace lamplighter {
namespace {
struct Local {};
}  // namespace

void guide_and_filter_avx512(const GuideAndFilterArgs& args, int64_t begin, int64_t end, void* scratch) {
  sampling::guide_and_filter_rows<Local>(args, begin, end, scratch);
}

void draw_avx512(const DrawArgs& args, int64_t begin, int64_t end) {
  sampling::draw_rows<Local>(args, begin, end);
}

}  // namespace lamplighter
