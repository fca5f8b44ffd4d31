#include "bundle/synthetic/script.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include <map>
#include <sstream>
#include <string>

#include "bundle/synthetic/model_sources.h"

namespace lamplighter {
namespace {

using torch::jit::BuiltinModule;
using Functions = std::map<std::string, std::string>;  // text by name

// What the text calls `torch`: operators, and the one dtype it names.
struct Torch : BuiltinModule {
  Torch() : BuiltinModule("aten") {}
  std::shared_ptr<torch::jit::SugaredValue> attr(const torch::jit::SourceRange& place,
                                                 torch::jit::GraphFunction& function,
                                                 const std::string& field) override {
    if (field != "bfloat16") return BuiltinModule::attr(place, function, field);
    return std::make_shared<torch::jit::SimpleValue>(function.graph()->insertConstant(at::kBFloat16, place));
  }
};

// Functions of a Python text: methods of a class, or with an empty name functions outside classes.
Functions functions_of(const std::string& text, const std::string& owner) {
  const std::size_t indent = owner.empty() ? 0 : 4;
  Functions functions;
  std::string* current = nullptr;
  bool inside = owner.empty();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (indent > 0 && !line.empty() && line[0] != ' ') {
      inside = line.rfind("class " + owner + "(", 0) == 0;
      current = nullptr;
    }
    if (!inside) continue;
    line.erase(0, indent);
    if (line.rfind("def ", 0) == 0) {
      current = &functions[line.substr(4, line.find('(') - 4)];
    } else if (!line.empty() && line[0] != ' ' && line[0] != ')') {  // a decorator, other code
      current = nullptr;
    }
    if (current != nullptr) *current += line + "\n";
  }
  functions.erase("__init__");
  return functions;
}

// The names of the text that are not its own.
struct Names : torch::jit::Resolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction&,
                                                         const torch::jit::SourceRange&) override;
};

std::shared_ptr<torch::jit::CompilationUnit> free_functions() {
  static const auto compiled = [] {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    unit->define(std::nullopt, functions_of(model_sources::kOps, "").at("packed"), std::make_shared<Names>(),
                 nullptr);
    return unit;
  }();
  return compiled;
}

std::shared_ptr<torch::jit::SugaredValue> Names::resolveValue(const std::string& name,
                                                              torch::jit::GraphFunction&,
                                                              const torch::jit::SourceRange&) {
  if (name == "torch") return std::make_shared<Torch>();
  if (name == "F") return std::make_shared<BuiltinModule>("aten");
  if (name == "lamplighter") return std::make_shared<BuiltinModule>("lamplighter");
  if (name != "packed") return nullptr;
  const auto unit = free_functions();
  return std::make_shared<torch::jit::FunctionValue>(
      torch::jit::StrongFunctionPtr(unit, &unit->get_function(name)));
}

// Replace the functions of a module whose head is one product.
Functions two_layer_head() {
  return functions_of(model_sources::kHead, "TwoLayerHead");
}

void define(torch::jit::Module& module, const Functions& methods) {
  std::string text;
  for (const auto& [name, method] : methods) text += method;
  module.define(text, std::make_shared<Names>());
}

}  // namespace

void define_layer(torch::jit::Module& module) {
  define(module, functions_of(model_sources::kLayer, "Layer"));
}

void define_target(torch::jit::Module& module, TargetText text) {
  Functions methods;
  if (text == TargetText::llamagen) methods = functions_of(model_sources::kLlamaGen, "TargetModule");
  if (text == TargetText::tar) methods = functions_of(model_sources::kTar, "TargetModule");
  if (text == TargetText::two_layers) methods = two_layer_head();
  methods.merge(functions_of(model_sources::kDecoder, "Decoder"));  // keeps what the subclass overrides
  define(module, methods);
}

void define_drafter(torch::jit::Module& module, bool two_layers) {
  Functions methods;
  if (two_layers) methods = two_layer_head();
  methods.merge(functions_of(model_sources::kDrafter, "DrafterModule"));
  define(module, methods);
}

}  // namespace lamplighter
