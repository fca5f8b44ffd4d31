#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decode/replay.h"

namespace lamplighter {
namespace {

// Library handles, workspaces, lazily loaded kernels and the interpreter's plans must be there before
// capture.
constexpr int kWarmUps = 3;

// One stream per device for all runs: memory that one run frees is then there for the next.
c10::cuda::CUDAStream run_stream(c10::DeviceIndex device) {
  static thread_local std::vector<std::optional<c10::cuda::CUDAStream>> streams;
  const auto index = static_cast<std::size_t>(device);
  if (streams.size() <= index) streams.resize(index + 1);
  if (!streams[index]) streams[index] = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device);
  return *streams[index];
}

// Waits for the work on the current stream.
c10::cuda::CUDAStream enter(const c10::Device& device) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::cuda::current_device();
  c10::cuda::getCurrentCUDAStream(index).synchronize();
  return run_stream(index);
}

// The first line of what Torch says.
std::string reason(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// For clean-up steps, which may be done already or impossible.
template <class F>
bool succeeds(F f) {
  try {
    f();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

struct Replay::Capture {
  Capture(const c10::Device& device, bool wanted, LogCallback callback)
      : on_stream(enter(device)), graph_wanted(wanted), note(std::move(callback)) {}
  // Waits for queued work, which must not outlive its graph, and returns the graph's memory to the device: no
  // other graph can use it, and none can be returned during a capture.
  ~Capture() {
    static_cast<void>(cudaStreamSynchronize(on_stream.current_stream()));
    if (!graph) return;
    graph.reset();
    succeeds([&] { c10::cuda::CUDACachingAllocator::emptyCache(pool); });
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void run(const std::function<void()>& work) {
    if (!graph_wanted || calls < kWarmUps) {
      ++calls;
      work();
      return;
    }
    if (!graph && !record(work)) {
      work();
      return;
    }
    graph->replay();
  }

  // Captures the work without running it. Other threads may allocate meanwhile.
  bool record(const std::function<void()>& work) {
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    stream.synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();  // a graph's pool cannot use what others hold unused
    graph.emplace(/*keep_graph=*/true);
    try {
      graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
      work();
      graph->capture_end();
      graph->instantiate();
      return true;
    } catch (const std::exception& error) {
      if (note) note("cycles are not captured as a CUDA graph: " + reason(error));
    }
    abandon(stream.device_index());
    return false;
  }

  // Ends a capture that failed midway. Where the driver gave it up, Torch leaves the allocators capturing
  // (the graph then has no pool), and they would keep all memory that they cache.
  void abandon(c10::DeviceIndex device) {
    graph_wanted = false;
    if (!succeeds([&] { graph->capture_end(); }) && !succeeds([&] { graph->pool(); })) {
      at::HostAllocator& host = *at::getHostAllocator(at::kCUDA);
      succeeds([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool); });
      succeeds([&] { host.end_allocate_to_pool(pool); });
      succeeds([&] { c10::cuda::CUDACachingAllocator::releasePool(device, pool); });
      succeeds([&] { host.release_pool(pool); });
    }
    static_cast<void>(cudaGetLastError());
    graph.reset();
  }

  std::int64_t kernels() {
    if (!graph) return 0;
    cudaGraph_t raw = graph->raw_cuda_graph();
    std::size_t count = 0;
    C10_CUDA_CHECK(cudaGraphGetNodes(raw, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    C10_CUDA_CHECK(cudaGraphGetNodes(raw, nodes.data(), &count));
    std::int64_t found = 0;
    for (const cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
      C10_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
      if (type == cudaGraphNodeTypeKernel) ++found;
    }
    return found;
  }

  c10::cuda::CUDAStreamGuard on_stream;
  bool graph_wanted;
  LogCallback note;
  int calls = 0;
  const c10::MempoolId_t pool = at::cuda::graph_pool_handle();
  std::optional<at::cuda::CUDAGraph> graph;
};

Replay::Replay(const c10::Device& device, bool graph, LogCallback note) {
  if (device.is_cuda()) capture_ = std::make_unique<Capture>(device, graph, std::move(note));
}
Replay::~Replay() = default;

void Replay::run(const std::function<void()>& work) {
  if (capture_) {
    capture_->run(work);
  } else {
    work();
  }
}

bool Replay::captures() const {
  return capture_ && capture_->graph_wanted;
}

std::int64_t Replay::kernels() const {
  return capture_ ? capture_->kernels() : 0;
}

}  // namespace lamplighter
