// Time of all linear layers of a decoder, one after the other, so that every weight is read from where it
// would be read in a real step: `packed` is lamplighter::linear over packed weights, `library` is at::linear
// over plain ones, `int8` and `int4` are lamplighter::linear over rounded weights (bf16 rows only). They run
// in turn; the table gives the tenth percentile of each in milliseconds of one thread's CPU time, the ratios
// of the others to `packed`, and the rate at which the packed weights pass (GB/s) and are multiplied
// (GMAC/s).
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/anchor.h"

namespace {

struct Decoder {
  const char* name;
  int64_t width, layers, hidden;
  int64_t head;  // ids; 0: no head
  int64_t samples;
};

constexpr Decoder kDecoders[] = {
    {"d192_L10", 192, 10, 512, 0, 30},           {"d384_L8", 384, 8, 1024, 0, 15},
    {"d768_L12", 768, 12, 2048, 0, 5},           {"d1024_L24", 1024, 24, 2816, 0, 3},
    {"d1024_L1_head", 1024, 1, 2816, 16384, 30},
};
constexpr int64_t kRows[] = {1, 2, 4, 6, 8, 10, 12, 16, 36, 60, 120};

struct Layer {
  at::Tensor plain, packed, int8, int4;
};

at::Tensor pack(const at::Tensor& weight, int bits) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lamplighter::pack_linear_bits", "")
                             .typed<at::Tensor(const at::Tensor&, int64_t)>();
  return op.call(weight, bits);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("lamplighter::linear", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&, int64_t)>();
  return op.call(x, weight, out_features);
}

double thread_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// The layers of the decoder that ran last; only one is kept in memory.
const std::vector<Layer>& layers_of(const Decoder& decoder, at::ScalarType dtype) {
  static std::vector<Layer> layers;
  static std::string key;
  const std::string wanted = decoder.name + std::string(c10::toString(dtype));
  if (key == wanted) return layers;
  key = wanted;
  layers.clear();
  const int64_t d = decoder.width;
  std::vector<std::pair<int64_t, int64_t>> shapes = {
      {3 * d, d}, {d, d}, {2 * decoder.hidden, d}, {d, decoder.hidden}};
  if (decoder.head > 0) shapes.emplace_back(decoder.head, d);
  std::vector<at::Tensor> weights;
  for (const auto& [out, in] : shapes) weights.push_back(at::randn({out, in}).to(dtype));
  for (int64_t layer = 0; layer < decoder.layers; ++layer) {
    for (const at::Tensor& weight : weights) {
      const bool rounds = dtype == at::kBFloat16;
      layers.push_back({weight.clone(), pack(weight, 16), rounds ? pack(weight, 8) : at::Tensor(),
                        rounds ? pack(weight, 4) : at::Tensor()});
    }
  }
  return layers;
}

double tenth_percentile(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 10];
}

// Milliseconds of the second of two runs over all layers: the caches hold what the first one left.
template <class Product>
double second_run(const std::vector<Layer>& layers, const at::Tensor& narrow, const at::Tensor& wide,
                  const Product& product) {
  double start = 0;
  for (int pass = 0; pass < 2; ++pass) {
    start = thread_milliseconds();
    for (const Layer& layer : layers) {
      const at::Tensor& x = layer.plain.size(1) == narrow.size(1) ? narrow : wide;
      benchmark::DoNotOptimize(product(x, layer));
    }
  }
  return thread_milliseconds() - start;
}

void run(benchmark::State& state, const Decoder& decoder, at::ScalarType dtype, int64_t rows) {
  const std::vector<Layer>& layers = layers_of(decoder, dtype);
  const at::Tensor narrow = at::randn({rows, decoder.width}).to(dtype);
  const at::Tensor wide = at::randn({rows, decoder.hidden}).to(dtype);
  double weights = 0;
  for (const Layer& layer : layers) weights += static_cast<double>(layer.plain.numel());
  std::vector<double> packed;
  std::vector<double> library;
  std::vector<double> int8;
  std::vector<double> int4;
  for (auto _ : state) {
    packed.push_back(second_run(layers, narrow, wide, [](const at::Tensor& x, const Layer& layer) {
      return linear(x, layer.packed, layer.plain.size(0));
    }));
    library.push_back(second_run(layers, narrow, wide, [](const at::Tensor& x, const Layer& layer) {
      return at::linear(x, layer.plain);
    }));
    if (dtype == at::kBFloat16) {
      int8.push_back(second_run(layers, narrow, wide, [](const at::Tensor& x, const Layer& layer) {
        return linear(x, layer.int8, layer.plain.size(0));
      }));
      int4.push_back(second_run(layers, narrow, wide, [](const at::Tensor& x, const Layer& layer) {
        return linear(x, layer.int4, layer.plain.size(0));
      }));
    }
    state.SetIterationTime(packed.back() * 1e-3);
  }
  const double best = tenth_percentile(packed);
  state.counters["packed_ms"] = best;
  state.counters["library_ms"] = tenth_percentile(library);
  state.counters["library/packed"] = tenth_percentile(library) / best;
  if (!int8.empty()) {
    state.counters["int8_ms"] = tenth_percentile(int8);
    state.counters["int8/packed"] = tenth_percentile(int8) / best;
    state.counters["int4_ms"] = tenth_percentile(int4);
    state.counters["int4/packed"] = tenth_percentile(int4) / best;
  }
  state.counters["GB/s"] = weights * static_cast<double>(c10::elementSize(dtype)) / best * 1e-6;
  state.counters["GMAC/s"] = weights * static_cast<double>(rows) / best * 1e-6;
}

void register_all() {
  for (const Decoder& decoder : kDecoders) {
    for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
      for (const int64_t rows : kRows) {
        const std::string name = std::string(decoder.name) + (dtype == at::kFloat ? "/fp32" : "/bf16") +
                                 "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark(name.c_str(), run, decoder, dtype, rows)
            ->Iterations(decoder.samples)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  lamplighter_ops_anchor();
  at::set_num_threads(1);
  register_all();
  std::string tabular = "--benchmark_counters_tabular=true";  // given flags come later and win
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, tabular.data());
  int count = argc + 1;
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
