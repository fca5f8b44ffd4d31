#include <algorithm>
#include <map>
#include <utility>

#include "base/files.h"
#include "bench/methods.h"
#include "bench/pass.h"
#include "bench/report/json.h"
#include "device/devices.h"
#include "device/machine.h"
#include "draft/auto.h"
#include "lamplighter/error.h"
#include "tools/bundle_facts.h"
#include "tools/commands/bench.h"
#include "tools/signals.h"

namespace lamplighter::cli {
namespace {

std::size_t largest(const std::vector<int>& sizes) {
  return static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
}

std::vector<Request> read_captions(const BenchFlags& flags) {
  PlanOptions options = flags.captions;
  flags.jobs.sampling.apply(options.defaults);
  options.seed = parse_seed(flags.jobs.seed);
  options.repeats = flags.jobs.batch_count;
  options.column = flags.jobs.column;
  std::vector<Request> requests;
  for (PlannedImage& image : make_plan(options).images) requests.push_back(std::move(image.request));
  return requests;
}

// The defaults are a lossless method with a drafter, one without, and a lossy one, if the bundle supports
// them.
std::vector<std::string> methods_of(const BenchFlags& flags, const Manifest& manifest) {
  if (!flags.methods.empty()) return flags.methods;
  std::vector<std::string> methods{kBaseline};
  for (const auto& [method, needs] : method_needs(manifest)) {
    if (needs.empty() && (method == "eagle" || method == "sjd" || method == "lantern++"))
      methods.push_back(method);
  }
  return methods;
}

std::vector<Request> read_prompts(const BenchFlags& flags, const Manifest& manifest) {
  Request defaults;
  if (manifest.prompt->kind == "class") defaults.class_id = 0;
  JobFlags jobs = flags.jobs;
  jobs.check(manifest);
  const bool named = jobs.names_images();
  if (!named) {
    // A default comparison takes a few captions; otherwise one caption fills the largest batch.
    const std::size_t images =
        std::max(static_cast<std::size_t>(jobs.batch_count), largest(flags.batch_sizes));
    const bool compares = flags.methods.empty() && methods_of(flags, manifest).size() > 1;
    const bool few = compares && images == 1 && !defaults.class_id;
    if (!defaults.class_id) {
      jobs.prompts = default_prompts(manifest);
      if (!few) jobs.prompts.resize(1);
    }
    jobs.batch_count = static_cast<int>(images);
  }
  std::vector<Request> requests;
  for (Job& job : make_jobs(jobs, defaults, parse_seed(jobs.seed)))
    requests.push_back(std::move(job.request));
  return requests;
}

std::vector<Request> read_requests(const BenchFlags& flags, const Manifest& manifest) {
  require_generatable(manifest);
  std::vector<Request> requests =
      flags.captions.captions.empty() ? read_prompts(flags, manifest) : read_captions(flags);
  if (flags.count && *flags.count < requests.size()) requests.resize(*flags.count);
  for (const Request& request : requests) TextToImage::check(manifest, request);
  if (largest(flags.batch_sizes) > requests.size()) {
    throw Error(ExitCode::usage, "--batch-sizes: got " + std::to_string(largest(flags.batch_sizes)) +
                                     ", expected at most " + std::to_string(requests.size()) +
                                     ", the number of images");
  }
  return requests;
}

BenchOptions read_options(const BenchFlags& flags, const Manifest& manifest) {
  BenchOptions options;
  options.methods = bench_methods(methods_of(flags, manifest), sweep_of(flags));
  for (const BenchMethod& method : options.methods) resolve_method(method.options, manifest);
  options.requests = read_requests(flags, manifest);
  options.batch_sizes.assign(flags.batch_sizes.begin(), flags.batch_sizes.end());
  const bool one = count_batches(options.requests.size(), options.batch_sizes.front()) == 1;
  options.repeats = flags.repeats.value_or(one ? 5 : 1);
  options.warmup = flags.warmup;
  return options;
}

// A pass scores both sequences of guidance if any image has guidance.
bool is_guided(const std::vector<Request>& requests, const Manifest& manifest) {
  return std::any_of(requests.begin(), requests.end(), [&](const Request& request) {
    return request.cfg_scale.value_or(manifest.sampling.cfg_scale) > 1;
  });
}

// Sample images for the page and the figures, from the first captions at the first batch size.
class SampleImages {
 public:
  SampleImages(const BenchFlags& flags, const BenchOptions& options) : requests_(options.requests) {
    constexpr std::size_t kMost = 24, kCaptions = 3;
    size_ = options.batch_sizes.front();
    if (!flags.export_html.empty() || !flags.export_svg.empty())
      captions_ = std::clamp<std::size_t>(kMost / options.methods.size(), 1, kCaptions);
  }

  void add(const BenchSample& sample, const Result& result) {
    if (sample.image >= captions_ || sample.repeat > 0 || sample.batch_size != size_) return;
    const Request& request = requests_[sample.image];
    found_[sample.image].push_back(
        {request.class_id ? "class " + std::to_string(*request.class_id) : request.prompt, sample.method,
         sample.seed, sample.statistics.step_compression(), acceptance_grid(result)});
  }

  // Returns the images by caption, then in the order of the methods.
  std::vector<PageImage> take(const std::vector<BenchMethod>& methods) {
    std::vector<PageImage> all;
    for (auto& [image, some] : found_) {
      for (const BenchMethod& method : methods) {
        for (PageImage& one : some) {
          if (one.method == method.name) all.push_back(std::move(one));
        }
      }
    }
    return all;
  }

 private:
  const std::vector<Request>& requests_;
  std::size_t size_ = 1, captions_ = 0;
  std::map<std::size_t, std::vector<PageImage>> found_;
};

// --save-table needs a method to choose.
void check_table(const BenchFlags& flags, const std::vector<BenchMethod>& methods, const Manifest& manifest) {
  const bool chooses = std::any_of(methods.begin(), methods.end(), [&](const BenchMethod& method) {
    return find_method(method.options.method).drafts() &&
           is_lossless(resolve_method(method.options, manifest));
  });
  if (flags.save_table && !chooses)
    throw Error(ExitCode::usage,
                "--save-table: got no lossless method that drafts, expected one in --methods");
}

// Saves one run for every batch size, with the options of the methods as the user gave them.
void save_tables(const BenchFlags& flags, const Manifest& manifest, const std::vector<BenchMethod>& methods,
                 const std::vector<BenchReport>& reports, Terminal& terminal) {
  if (!flags.save_table) return;
  std::map<std::size_t, TableRun> runs;
  for (const BenchReport& report : reports) {
    TableRun& run = runs[report.batch_size];
    run.batch_size = static_cast<int>(report.batch_size);
    for (const BenchMethod& method : methods) {
      if (method.name == report.method && report.speedup.count > 0)
        run.rows.push_back({method.options, std::nullopt, report.speedup.mean});
    }
  }
  RuntimeOptions runtime = flags.model.options();
  runtime.note = {};  // the engine has logged the notes
  const Placement placement = resolve_placement(runtime, manifest);
  for (const auto& [size, run] : runs) save_table(manifest, placement, run, terminal.log_callback());
}

}  // namespace

BenchResults bench_bundle(const BenchFlags& flags, Terminal& terminal) {
  const Manifest manifest = read_manifest(flags.model.folder());
  BenchOptions options = read_options(flags, manifest);
  check_table(flags, options.methods, manifest);
  BenchRun run;
  run.model = manifest.name;
  run.checksum = sha256_file(join_path(manifest.directory, "manifest.json"), ExitCode::bundle);
  run.batch_sizes = options.batch_sizes;
  run.images = options.requests.size();
  run.repeats = options.repeats;
  run.warmup = options.warmup;
  run.count_prompt = flags.count_prompt;

  RuntimeOptions runtime = flags.model.options();
  runtime.batch_size = static_cast<int>(largest(flags.batch_sizes));
  TextToImage engine(manifest.directory, runtime);
  const c10::Device device(engine.device());
  run.device = engine.device();
  run.dtype = engine.dtype();
  run.cache_dtype = engine.cache_dtype();
  run.methods = options.methods;
  for (BenchMethod& method : run.methods) {
    method.options =
        resolve_method(method.options, manifest, device.is_cpu() ? "cpu" : "cuda", runtime.batch_size);
  }
  const Nvml nvml(device_bus_id(device));
  run.environment = read_environment(device.is_cpu() ? "" : device_name(device), nvml);
  EnergyMeter energy(&nvml);
  options.energy = &energy;
  const OrderlyStop orderly;
  const LoadMeter load;
  SampleImages images(flags, options);
  run.samples = run_bench(
      engine, options,
      [&](const BenchSample& sample, const Result& result) {
        images.add(sample, result);
        terminal.detail(sample.method + ", batch size " + std::to_string(sample.batch_size) + ", batch " +
                        std::to_string(sample.batch) + ", repeat " + std::to_string(sample.repeat) +
                        ": decode " + format_fixed(sample.statistics.decode_ms, 1) + " ms");
        return stop_signal() == 0;
      },
      [](const Progress&) { return stop_signal() == 0; });
  run.environment.others = load.others();
  run.peak_bytes = peak_memory(device);
  for (const BenchSample& sample : run.samples)
    run.peak_bytes = std::max(run.peak_bytes, sample.peak_bytes.value_or(0));
  run.reports = report(run.samples, {run.count_prompt});
  const Request& first = options.requests.front();
  const Grid& grid = find_grid(manifest, first.width, first.height);
  add_pass_costs(run.reports, run.methods,
                 pass_facts(manifest, run.dtype, grid, is_guided(options.requests, manifest)));
  save_tables(flags, manifest, options.methods, run.reports, terminal);
  return {heading(run), tables(run), verdicts(run), to_json(run), images.take(options.methods)};
}

}  // namespace lamplighter::cli
