#include "kernels/trees/children_rows.h"

namespace lamplighter {
namespace {
struct Local {};
}  // namespace

void draw_children_avx512(const DrawChildrenArgs& args, int64_t begin, int64_t end, void* scratch) {
  children::draw_children_rows<Local>(args, begin, end, scratch);
}

}  // namespace lamplighter
