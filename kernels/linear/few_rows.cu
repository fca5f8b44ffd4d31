#include "kernels/common/cuda/launch.h"
#include "kernels/linear/few_rows_cuda.h"

namespace lamplighter {
namespace {

template <FewRowsForm form>
void launch(const FewRowsArgs& args, cudaStream_t stream) {
  launch_chained(few_rows_kernel_for<form>(args.rows),
                 dim3(grid_size(args.out_features / few_rows_block(args))), FewRowsPlan<form, 1>::kThreads, 0,
                 stream, args);
}

}  // namespace

void few_rows_cuda(const FewRowsArgs& args, void* stream) {
  if (args.rows == 0) return;
  switch (args.form) {
    case FewRowsForm::kPlain:
      return launch<FewRowsForm::kPlain>(args, cuda_stream(stream));
    case FewRowsForm::kAdd:
      return launch<FewRowsForm::kAdd>(args, cuda_stream(stream));
    case FewRowsForm::kNorm:
      return launch<FewRowsForm::kNorm>(args, cuda_stream(stream));
    case FewRowsForm::kGated:
      return launch<FewRowsForm::kGated>(args, cuda_stream(stream));
  }
}

}  // namespace lamplighter
