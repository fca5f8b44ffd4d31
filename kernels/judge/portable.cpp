#include "kernels/judge/rows.h"

namespace lamplighter {
namespace {
struct Local {};
}  // namespace

void verify_portable(const VerifyArgs& args, int64_t begin, int64_t end, float* scratch) {
  verification::verify_images<Local>(args, begin, end, scratch);
}

}  // namespace lamplighter
