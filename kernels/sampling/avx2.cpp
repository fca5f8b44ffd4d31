#include "kernels/sampling/rows.h"

namespace lamplighter {
namespace {
struct Local {};
}  // namespace

void guide_and_filter_avx2(const GuideAndFilterArgs& args, int64_t begin, int64_t end, void* scratch) {
  sampling::guide_and_filter_rows<Local>(args, begin, end, scratch);
}

void probabilities_avx2(const ProbabilitiesArgs& args, int64_t begin, int64_t end, void* scratch) {
  sampling::probabilities_rows<Local>(args, begin, end, scratch);
}

void draw_avx2(const DrawArgs& args, int64_t begin, int64_t end, void* scratch) {
  sampling::draw_rows<Local>(args, begin, end, scratch);
}

}  // namespace lamplighter
