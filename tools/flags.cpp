#include "tools/flags.h"

#include <charconv>
#include <filesystem>
#include <random>
#include <type_traits>
#include <utility>

#include "base/message.h"
#include "base/suggestion.h"
#include "device/placement.h"
#include "draft/auto.h"
#include "draft/options/option_values.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "tools/bundle_facts.h"
#include "tools/help.h"
#include "tools/terminal.h"
#include "tools/values.h"

namespace lamplighter::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundle = "models/demo/bundle";

// The demo bundle of a source tree (build/lamplighter) or of an installation (bin/lamplighter).
std::string demo_bundle() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path root = program.parent_path().parent_path();
  for (const fs::path& folder : {root / kBundle, root / "share/lamplighter" / kBundle}) {
    if (fs::exists(folder / "manifest.json", ignored)) return folder.string();
  }
  return "";
}

// The manifest of the demo bundle, for help. A damaged or missing one adds nothing to help.
std::optional<Manifest> demo_manifest() {
  try {
    return read_manifest(demo_bundle());
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <class T>
std::string text_of(T number) {
  if constexpr (std::is_floating_point_v<T>)
    return number_text(number);
  else
    return std::to_string(number);
}

// The default of a value that the bundle gives, with the demo's: "the bundle's, 2 for the demo".
HelpPage::Text bundle_usual(std::function<std::string(const Manifest&)> value) {
  return [value = std::move(value)] {
    const std::optional<Manifest> demo = demo_manifest();
    return "the bundle's" + (demo ? ", " + value(*demo) + " for the demo" : "");
  };
}

template <class T>
void add_option(CLI::App& command, const MethodOption& option, T& value) {
  const std::string name = "--" + flag_name(option);
  CLI::Option* flag = nullptr;
  if constexpr (std::is_same_v<T, std::vector<float>>)
    flag = add_list(command, name, value, option.help);
  else
    flag = command.add_option(name, value, option.help);
  flag->group(option.group)->type_name(option.value)->default_str(option.usual.words);
  with_choices(command, flag, option.limits.choices.empty() ? option.words : option.limits.choices);
  if (option.is_common) common(command, flag);
}

}  // namespace

void ModelFlags::add_model(CLI::App& command, bool positional) {
  begin_group(command, "Model and machine");
  common(command, command.add_option(positional ? "-m,--model,model" : "-m,--model", model, kModelHelp))
      ->envname("LAMPLIGHTER_MODEL")
      ->type_name("DIR")
      ->default_str(kModelUsual);
}

void ModelFlags::add_batch_size(CLI::App& command) {
  begin_group(command, "Model and machine");
  common(command, command.add_option("--batch-size", runtime.batch_size,
                                     "Images generated side by side; a waiting image takes the slot of a "
                                     "complete one"))
      ->type_name("N")
      ->capture_default_str();
}

void ModelFlags::add_runtime(CLI::App& command) {
  begin_group(command, "Model and machine");
  runtime.note = print_note;
  const std::vector<std::string> devices{"auto", "cpu", "cuda"};
  const auto choice = [&](const char* name, std::string& value, const std::vector<std::string>& names,
                          const char* more) {
    CLI::Option* flag = command.add_option(name, value, list_of(names) + more);
    return with_choices(command, flag->type_name("NAME")->capture_default_str(), names);
  };
  common(command, choice("--device", runtime.device, devices,
                         " or cuda:N; auto is CUDA if there is a device, else the CPU"));
  choice("--dtype", runtime.dtype, dtype_names(),
         "; auto is bf16, int8 and int4 round the weights, fp16 needs CUDA");
  choice("--cache-dtype", runtime.cache_dtype, cache_dtype_names(),
         "; int8 rounds the target's keys and values, which halves their memory, auto is the dtype of the "
         "activations");
  common(command, command.add_option("-t,--threads", runtime.threads, "CPU threads; 0 = all cores"))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--no-graph", no_graph,
                   "CUDA: launch the kernels of every cycle instead of replaying a captured graph. The "
                   "tokens are the same, "
                   "and every stage of a cycle is timed");
  command.add_flag("--skip-checksums", skip_checksums, kSkipChecksums);
}

std::string ModelFlags::folder() const {
  const std::string folder = model.empty() ? demo_bundle() : model;
  if (folder.empty()) {
    throw Error(ExitCode::bundle, "no model: the demo bundle is not beside the program; give --model DIR");
  }
  return folder;
}

void ModelFlags::add_known_words(CLI::App& command) {
  Help::page(command).lists.emplace_back([] {
    HelpList list{"The demo bundle generates", {}};
    const std::optional<Manifest> demo = demo_manifest();
    if (demo && demo->prompt && demo->prompt->vocabulary)
      list.entries = known_words(*demo->prompt->vocabulary);
    return list;
  });
}

RuntimeOptions ModelFlags::options() const {
  RuntimeOptions options = runtime;
  options.verify_checksums = !skip_checksums;
  options.graph = !no_graph;
  return options;
}

void LogFlags::add(CLI::App& command) {
  begin_group(command, "Options");
  CLI::Option* silent = command.add_flag("-q,--quiet", quiet, "Print results and errors only");
  command.add_flag("-v,--verbose", verbose, "Print the time of every stage")->excludes(silent);
}

void SamplingFlags::add(CLI::App& command) {
  begin_group(command, "Sampling");
  // A value that the bundle gives.
  const auto add = [&](const char* names, auto& value, const char* type, const char* help, auto usual) {
    CLI::Option* flag = command.add_option(names, value, help)->type_name(type);
    return with_usual(command, flag,
                      bundle_usual([=](const Manifest& demo) { return text_of(usual(demo)); }));
  };
  common(command, add("--cfg-scale", cfg_scale, "X", "Guidance scale; 1 = no guidance",
                      [](const Manifest& demo) { return demo.sampling.cfg_scale; }));
  common(command, add("--temperature", temperature, "X", "0 = greedy, always the most probable token",
                      [](const Manifest& demo) { return demo.sampling.temperature; }));
  common(command, add("--top-k", top_k, "K", "Sample from the K most probable tokens; 0 = all",
                      [](const Manifest& demo) { return demo.sampling.top_k; }));
  add("--top-p", top_p, "X", "Sample from the most probable tokens up to this probability mass; 1 = all",
      [](const Manifest& demo) { return demo.sampling.top_p; });
  add("--cfg-interval", cfg_interval, "N", "Guide tokens 0 to N + 1 only; -1 = all",
      [](const Manifest& demo) { return demo.sampling.cfg_interval; });
  command
      .add_option("--negative-prompt", negative_prompt,
                  "Prompt that guidance moves away from, for bundles with negative prompts")
      ->type_name("TEXT")
      ->default_str("the bundle's");
  add("-W,--width", width, "N", "Width of an image in pixels, one of the bundle's sizes",
      [](const Manifest& demo) { return demo.grids.front().width; });
  add("-H,--height", height, "N", "Height of an image in pixels, one of the bundle's sizes",
      [](const Manifest& demo) { return demo.grids.front().height; });
}

void SamplingFlags::apply(Request& request) const {
  const auto set = [](auto& target, const auto& value) {
    if (value) target = value;
  };
  set(request.cfg_scale, cfg_scale);
  set(request.temperature, temperature);
  set(request.top_p, top_p);
  set(request.top_k, top_k);
  set(request.cfg_interval, cfg_interval);
  set(request.negative_prompt, negative_prompt);
  const auto set_side = [](int& side, const char* flag, const std::optional<int>& value) {
    if (value && *value == 0)  // in a request, 0 means the size of the bundle
      throw Error(ExitCode::usage, std::string(flag) + ": got 0, expected 1 or more");
    side = value.value_or(side);
  };
  set_side(request.width, "--width", width);
  set_side(request.height, "--height", height);
}

void MethodFlags::add(CLI::App& command) {
  begin_group(command, "Method");
  std::vector<std::string> names = method_names();
  method_ = common(command, command.add_option("--method", options.method,
                                               list_of(names) + ", or auto: the lossless method that is "
                                                                "fastest on this machine, measured once"))
                ->type_name("NAME")
                ->capture_default_str();
  names.emplace_back(kAutoMethod);
  with_choices(command, method_, names);
  Help::page(command).lists.emplace_back([] {
    HelpList list{"Methods", {}};
    for (const MethodEntry& method : methods()) list.entries.emplace_back(method.name, method.meaning);
    return list;
  });
  for (const MethodOption& option : method_options())
    std::visit([&](auto field) { add_option(command, option, options.*field); }, option.field);
}

MethodOptions MethodFlags::over(const MethodOptions& recorded) const {
  return merge_methods(recorded, options, method_->count() != 0);
}

std::uint64_t parse_seed(const std::string& text) {
  if (text == "-1") return std::random_device()();
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw Error(ExitCode::usage,
                "--seed: got " + quote(text) + ", expected -1 (random) or 0 to 18446744073709551615");
  }
  return seed;
}

}  // namespace lamplighter::cli
