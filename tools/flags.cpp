#include "flags.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <random>
#include <set>
#include <type_traits>

#include "base/files.h"
#include "base/json.h"
#include "base/message.h"
#include "bundle_facts.h"
#include "help.h"
#include "lamplighter/error.h"
#include "propose/options/options.h"
#include "propose/registry.h"
#include "terminal.h"
#include "usage.h"
#include "values.h"

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

// The value of a configuration entry as a flag would give it.
std::string flag_text(const JsonReader& reader, const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  reader.reject(key, "a string, a number, true or false");
}

template <class T>
void add_option(CLI::App& command, const MethodOption& option, T& value) {
  const std::string name = "--" + flag_name(option);
  CLI::Option* flag = nullptr;
  if constexpr (std::is_same_v<T, std::vector<float>>)
    flag = add_list(command, name, value, option.help);
  else
    flag = command.add_option(name, value, option.help);
  flag->group(option.group)->type_name(option.value);
}

// Whether a flag says more than that it is off.
bool is_on(const CLI::Option& option) {
  return option.count() != 0 && (option.get_expected_max() != 0 || option.as<bool>());
}

using Options = std::set<const CLI::Option*>;

// One of the options that do not go together with this one, or none.
const CLI::Option* excluding(const CLI::Option& option, const Options& others) {
  for (const CLI::Option* other : option.get_excludes()) {
    if (others.count(other) != 0) return other;
  }
  return nullptr;
}

}  // namespace

void ModelFlags::add_model(CLI::App& command, bool positional) {
  begin_group(command, "Model and machine");
  command
      .add_option(positional ? "-m,--model,model" : "-m,--model", model,
                  "Bundle folder (environment: LAMPLIGHTER_MODEL; default: the demo bundle)")
      ->envname("LAMPLIGHTER_MODEL")
      ->type_name("DIR");
}

void ModelFlags::add_batch_size(CLI::App& command) {
  begin_group(command, "Model and machine");
  command
      .add_option("--batch-size", runtime.batch_size,
                  "Pictures drawn side by side; the next takes the place of one that is complete")
      ->type_name("N");
}

void ModelFlags::add_runtime(CLI::App& command) {
  begin_group(command, "Model and machine");
  runtime.note = print_note;
  command.add_option("--device", runtime.device, "auto, cpu, cuda or cuda:N")->type_name("NAME");
  command
      .add_option("--dtype", runtime.dtype,
                  "auto, fp32, bf16, int8, int4, or fp16 on CUDA; int8 and int4 round the weights")
      ->type_name("NAME");
  command
      .add_option("--cache-dtype", runtime.cache_dtype,
                  "auto (as the activations) or int8: rounds the target's keys and values, half the memory")
      ->type_name("NAME");
  command.add_option("-t,--threads", runtime.threads, "CPU threads; 0 = all cores")->type_name("N");
  command.add_flag(
      "--no-graph", no_graph,
      "On CUDA, queue the kernels of every cycle instead of replaying a captured graph: the same "
      "tokens, and the parts of a cycle are timed; without effect on the CPU");
  command.add_flag("--skip-checksums", skip_checksums,
                   "Do not compare the bundle's files with their checksums");
}

std::string ModelFlags::folder() const {
  const std::string folder = model.empty() ? demo_bundle() : model;
  if (folder.empty()) {
    throw Error(ExitCode::bundle, "no model: the demo bundle is not beside the program; give --model DIR");
  }
  return folder;
}

// Read when help is asked for; a demo bundle that is damaged or absent knows no words.
void ModelFlags::add_known_words(CLI::App& command) {
  command.footer([] {
    std::string text;
    try {
      const Manifest manifest = read_manifest(demo_bundle());
      if (manifest.prompt && manifest.prompt->vocabulary) {
        text = "The demo bundle draws\n";
        for (const auto& [kind, words] : known_words(*manifest.prompt->vocabulary))
          text += help_entry(kind, words);
      }
    } catch (const Error&) {
    }
    return text;
  });
}

RuntimeOptions ModelFlags::options() const {
  RuntimeOptions options = runtime;
  options.verify_checksums = !skip_checksums;
  options.graph = !no_graph;
  return options;
}

void TalkFlags::add(CLI::App& command) {
  begin_group(command, "Options");
  CLI::Option* silent = command.add_flag("-q,--quiet", quiet, "Print results and errors only");
  command.add_flag("-v,--verbose", verbose, "Print where the time goes")->excludes(silent);
}

void SamplingFlags::add(CLI::App& command) {
  begin_group(command, "Sampling");
  command.add_option("--cfg-scale", cfg_scale, "Guidance scale; 1 = none")->type_name("X");
  command.add_option("--temperature", temperature, "0 = most probable token")->type_name("X");
  command.add_option("--top-k", top_k, "Keep the K most probable tokens; 0 = all")->type_name("K");
  command.add_option("--top-p", top_p, "Keep tokens up to this mass; 1 = all")->type_name("X");
  command.add_option("--cfg-interval", cfg_interval, "Guide tokens 0 .. N + 1 only; -1 = all")
      ->type_name("N");
  command
      .add_option("--negative-prompt", negative_prompt,
                  "What guidance leads away from (bundles with negative prompts; default: the bundle's)")
      ->type_name("TEXT");
  command.add_option("-W,--width", width, "Pixels; one of the bundle's grids")->type_name("N");
  command.add_option("-H,--height", height, "Pixels; one of the bundle's grids")->type_name("N");
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
    if (value && *value == 0)  // to requests that is the bundle's own side
      throw Error(ExitCode::usage, std::string(flag) + ": got 0, expected 1 or more");
    side = value.value_or(side);
  };
  set_side(request.width, "--width", width);
  set_side(request.height, "--height", height);
}

void MethodFlags::add(CLI::App& command) {
  begin_group(command, "Method");
  method_ = command
                .add_option("--method", options.method,
                            method_names() +
                                ", or auto: the fastest exact one that bench --save-table or "
                                "tune-tree --save-table found here; the rest follows")
                ->type_name("NAME");
  std::string meanings = "Methods";
  for (const MethodEntry& method : methods())
    meanings += "\n  " + std::string(method.name) + ": " + method.meaning;
  command.footer(meanings);
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

void apply_config(CLI::App& command, const std::string& path) {
  const Json config = parse_json(read_input(path, limits::kConfig), path, ExitCode::input);
  const JsonReader reader(config, path, ExitCode::input);
  Options given, taken;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() != 0) given.insert(option);
  }
  for (const auto& [key, value] : config.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    CLI::Option* option = command.get_option_no_throw("--" + name);
    if (option == nullptr || name == "config" || name == "help")
      reader.fail("unknown flag " + excerpt_of(key));
    if (given.count(option) != 0 || excluding(*option, given) != nullptr) continue;
    if (value.is_array()) {
      if (value.empty()) reader.reject(key, "a value or more");
      for (const Json& element : value) option->add_result(flag_text(reader, key, element));
    } else {
      option->add_result(flag_text(reader, key, value));
    }
    try {
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      reader.fail(describe_value(command, error));
    }
    if (!is_on(*option)) continue;
    if (const CLI::Option* other = excluding(*option, taken))
      reader.fail(option->get_name() + " and " + other->get_name() + " exclude each other");
    taken.insert(option);
  }
}

}  // namespace lamplighter::cli
