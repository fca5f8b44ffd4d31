#pragma once

#include <ATen/Parallel.h>
#include <c10/core/Device.h>

namespace lamplighter {

// Library convolutions round differently for other numbers of images and of threads: image decoders and
// encoders take every image alone and, on the CPU, with one thread, which this sets as long as it lives.
class OneThread {
 public:
  explicit OneThread(const c10::Device& device) : threads_(at::get_num_threads()) {
    changed_ = device.is_cpu() && threads_ > 1;
    if (changed_) at::set_num_threads(1);
  }
  ~OneThread() {
    if (changed_) at::set_num_threads(threads_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
  bool changed_ = false;
};

}  // namespace lamplighter
