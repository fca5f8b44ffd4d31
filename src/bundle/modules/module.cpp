#include "bundle/modules/module.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "base/files.h"
#include "base/format.h"
#include "base/message.h"
#include "bundle/modules/fuse.h"
#include "bundle/modules/rounding.h"
#include "device/machine.h"
#include "kernels/anchor.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ExitCode::bundle, message);
}

// The first line of Torch's message that is not empty: the rest is a stack trace.
std::string first_line(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  text.erase(0, text.find_first_not_of(" \n"));
  return text.substr(0, text.find('\n'));
}

// TorchScript reports the call stack first and the reason last.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// What is wrong with an archive that Torch does not read, and what to do. Torch's own sentence helps only
// where it names an operator.
std::string damage_of(const std::exception& error) {
  constexpr std::string_view kOperator = "Unknown builtin op: ";
  const std::string reason = first_line(error);
  const std::size_t at = reason.find(kOperator);
  if (at != std::string::npos) {
    std::string name = reason.substr(at + kOperator.size());
    name = name.substr(0, name.find_first_of(" \n"));
    while (!name.empty() && name.back() == '.') name.pop_back();
    return "got an archive that calls " + quote(name) +
           ", expected operators of this version; export the bundle again";
  }
  if (reason.find("version") != std::string::npos && reason.find("supported") != std::string::npos)
    return "got an archive of a newer Torch, expected one of this version or an older one; export the bundle "
           "again";
  return "got a damaged archive, expected the TorchScript archive that was exported; `lamplighter check` "
         "compares its checksum, copy the file or export the bundle again";
}

// The field of a cache's shape that attention complains about; empty: none.
std::string cache_field(const std::string& reason) {
  const auto says = [&](const char* words) { return reason.find(words) != std::string::npos; };
  if (says("attend: layer is ")) return "layers";
  if (says("attend: cache has shape ")) return "kv_heads";
  const bool is_width =
      says("attend: qkv has shape ") || says("attend: rotary has shape ") || says("attend: head_dim ");
  return is_width ? "head_dim" : "";
}

// Fields of the manifest that a call depends on which failed for this reason.
std::string fields_of(const std::string& role, const std::string& method, const std::string& reason) {
  const std::string field = cache_field(reason);
  const std::string drafter = "drafters." + role.substr(role.find(' ') + 1);
  if (!field.empty()) return (role == "target" ? "cache" : drafter) + "." + field;
  if (method == "context" || method == "denoise") return "prompt, target, tokens, grids and diffusion";
  if (role == "image_decoder" || role == "image_encoder") return "grids and decoder";
  if (role == "text_encoder") return "tokenizer and prompt.features";
  if (role != "target") return drafter + " (layers, kv_heads, head_dim, heads, queries)";
  if (method == "embed_condition") return "prompt (classes, features, length)";
  return "tokens, target and cache (layers, kv_heads, head_dim)";
}

// Says in plain words what a file is that is no TorchScript archive.
void check_archive(const std::string& path, const std::string& role) {
  std::array<char, 16> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  const std::string start(head.data(), head.size());
  const std::string where = role + " in " + path + ": ";
  if (start.rfind("PK", 0) != 0) {
    const bool markup = start.find('<') != std::string::npos && start.find('<') < 4;
    fail(where + (markup ? "got an HTML page" : "not a zip archive") +
         ", expected a TorchScript archive; was the download complete?");
  }
  try {
    caffe2::serialize::PyTorchStreamReader reader(path);
    if (!reader.hasRecord("constants.pkl")) {
      fail(where + "got a checkpoint (state dict), expected a TorchScript archive; run lamplighter-export");
    }
  } catch (const c10::Error& error) {
    fail(where + damage_of(error));
  }
}

// What makes weights smaller that do not fit.
std::string smaller_weights(const ModuleEntry& entry, const std::string& role, bool widened) {
  if (widened) return "dtype bf16 takes half of it";
  const int bits = stored_bits(entry);
  if (role != "target" || bits == 4) return "they need more memory than there is";
  const std::string smaller = entry.dtype == "float32" ? "bf16" : bits == 16 ? "int8 or int4" : "int4";
  return "a bundle exported with --dtype " + smaller + " is smaller";
}

// Weights are read in their stored type and then cast one by one.
void require_room(const std::string& path, const ModuleEntry& entry, const std::string& role,
                  const Placement& placement) {
  std::error_code failed;
  const std::uintmax_t stored = std::filesystem::file_size(path, failed);
  if (failed) return;  // the check of the archive has a better message
  const bool widened = placement.dtype == c10::kFloat && entry.dtype != "float32";
  const std::string less =
      smaller_weights(entry, role, widened) +
      std::string(placement.device.is_cuda() ? ", and device cpu uses other memory" : "");
  require_memory(placement.device, static_cast<std::int64_t>(stored) * (widened ? 2 : 1), 1,
                 "the weights of " + role + " in " + dtype_name(placement), less);
}

// Profiling would recompile a graph for every new tree size, which costs seconds; our operators leave nothing
// to fuse.
constexpr auto kNoProfiling = torch::jit::ExecutorExecutionMode::SIMPLE;

}  // namespace

struct Module::Archive {
  torch::jit::Module module;
  std::unordered_map<std::string, torch::jit::Method> methods;
  // Methods that run another graph than the archive's, which takes the module first.
  std::unordered_map<std::string, std::unique_ptr<torch::jit::GraphFunction>> rewritten;

  void add(const torch::jit::Method& method) {
    torch::jit::toGraphFunction(method.function())._set_initial_executor_execution_mode(kNoProfiling);
    methods.emplace(method.name(), method);
  }
  void rewrite(const std::string& name, const std::shared_ptr<torch::jit::Graph>& graph) {
    rewritten.emplace(name, std::make_unique<torch::jit::GraphFunction>(name, graph, nullptr, kNoProfiling));
  }
};

Module::Module(const std::string& directory, const ModuleEntry& entry, const std::string& role,
               const std::vector<std::string>& methods, const Placement& placement)
    : archive_(std::make_shared<Archive>()), role_(role), placement_(placement) {
  lamplighter_ops_anchor();  // archives call its operators by name
  const std::string path = join_path(directory, entry.file);
  check_archive(path, role);
  require_room(path, entry, role, placement);
  const c10::InferenceMode inference;
  try {
    torch::jit::ExtraFilesMap no_extra_files;
    archive_->module = torch::jit::load(path, placement.device, no_extra_files, /*load_debug_files=*/false);
  } catch (const std::exception& error) {
    if (const std::optional<Error> known = machine_error(error, role + " in " + path)) throw *known;
    fail(role + " in " + path + ": " + damage_of(error));
  }
  archive_->module.eval();
  set_up(role + " in " + path, methods, stored_bits(entry));
}

Module::Module(const torch::jit::Module& module, const std::string& role,
               const std::vector<std::string>& methods, const Placement& placement)
    : archive_(std::make_shared<Archive>()), role_(role), placement_(placement) {
  archive_->module = module;
  set_up(role, methods, 16);
}

void Module::set_up(const std::string& where, const std::vector<std::string>& methods, int bits) {
  const c10::InferenceMode inference;
  for (const std::string& name : methods) {
    const auto method = archive_->module.find_method(name);
    if (!method) fail(where + ": method " + name + " is missing; export the bundle again");
    archive_->add(*method);
  }
  if (const auto prepare = archive_->module.find_method("prepare")) {
    archive_->add(*prepare);
    const int to = placement_.weight_bits;
    if (to != 16) archive_->rewrite("prepare", rounding_graph(archive_->module, "prepare", to));
    call("prepare", {at::empty({0}, at::dtype(placement_.dtype).device(placement_.device))});
  }
  // Fusion pays for products of few rows; others would only be split into more operators.
  const bool rounded = bits != 16 || placement_.weight_bits != 16;
  if (!placement_.device.is_cuda() || placement_.dtype != c10::kBFloat16 || rounded) return;
  for (const std::string& name : methods) archive_->rewrite(name, fused_graph(archive_->module, name));
}

std::vector<at::Tensor> Module::call(const std::string& method,
                                     const std::vector<at::Tensor>& arguments) const {
  const auto found = archive_->methods.find(method);
  if (found == archive_->methods.end()) fail(role_ + ": method " + method + " is missing");
  const c10::InferenceMode inference;
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  const auto rewritten = archive_->rewritten.find(method);
  try {
    if (rewritten != archive_->rewritten.end()) {
      stack.insert(stack.begin(), archive_->module._ivalue());
      rewritten->second->run(stack);
    } else {
      found->second.run(stack);
    }
  } catch (const std::exception& error) {
    if (const std::optional<Error> known = machine_error(error, role_ + "." + method)) throw *known;
    const std::string reason = last_line(error.what());
    fail(role_ + "." + method + ": " + reason + "; check " + fields_of(role_, method, reason) +
         " in manifest.json");
  }
  const c10::IValue result = std::move(stack.back());
  if (result.isTensor()) return {result.toTensor()};
  std::vector<at::Tensor> tensors;
  if (result.isTuple()) {
    for (const c10::IValue& element : result.toTupleRef().elements()) {
      if (!element.isTensor())
        fail(role_ + "." + method + ": got a " + element.tagKind() + " among the results");
      tensors.push_back(element.toTensor());
    }
  }
  return tensors;
}

at::Tensor Module::operator()(const std::string& method, const std::vector<at::Tensor>& arguments) const {
  std::vector<at::Tensor> results = call(method, arguments);
  if (results.size() != 1) {
    fail(role_ + "." + method + ": got " + counted(results.size(), "result") + ", expected one tensor");
  }
  return std::move(results.front());
}

at::Tensor Module::buffer(const std::string& name) const {
  if (!archive_->module.hasattr(name)) return {};
  const c10::IValue value = archive_->module.attr(name);
  return value.isTensor() ? value.toTensor() : at::Tensor();
}

}  // namespace lamplighter
