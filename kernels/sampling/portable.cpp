#include "kernels/sampling/rows.h"

namespace lamplighter {
namespace {
struct Local {};
}  // namespace

void guide_and_filter_portable(const GuideAndFilterArgs& args, int64_t begin, int64_t end, void* scratch) {
  sampling::guide_and_filter_rows<Local>(args, begin, end, scratch);
}

void probabilities_portable(const ProbabilitiesArgs& args, int64_t begin, int64_t end, void* scratch) {
  sampling::probabilities_rows<Local>(args, begin, end, scratch);
}

void draw_portable(const DrawArgs& args, int64_t begin, int64_t end, void* scratch) {
  sampling::draw_rows<Local>(args, begin, end, scratch);
}

}  // namespace lamplighter
