#pragma once

namespace torch::jit {
struct Module;
}

namespace lamplighter {

// The methods of exported modules, compiled from the very text in models/ that the exporters script; it is
// embedded in the program. The modules must have the attributes and buffers that the methods read.
// Throws c10::Error when the text is not what the compiler takes.
void define_layer(torch::jit::Module& module);  // of a target, whose `layers` is a tuple, or of a drafter
enum class TargetText {
  llamagen,
  tar,
  tokens,
  two_layers
};  // prompts of text features, of codes' features, of tokens, a head of two layers
void define_target(torch::jit::Module& module, TargetText text);
void define_drafter(torch::jit::Module& module, bool two_layers);  // of the target's head, which it shares

}  // namespace lamplighter
