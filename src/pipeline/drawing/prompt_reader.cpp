#include "pipeline/drawing/prompt_reader.h"

#include <c10/core/InferenceMode.h>

#include <utility>

namespace lamplighter {

Condition PromptReader::read(std::size_t request) {
  const Prompt& prompt = requests_[request].prompt;
  if (prompt == last_) return condition_;
  const auto known = ahead_.find(prompt);
  condition_ = known != ahead_.end() ? known->second.get() : encoder_.encode(*prompt);
  last_ = prompt;
  return condition_;
}

void PromptReader::read_ahead(std::size_t begin, std::size_t end) {
  if (!own_thread_) return;
  std::map<Prompt, std::shared_future<Condition>> wanted;
  for (std::size_t i = begin; i < end; ++i) {
    const Prompt& prompt = requests_[i].prompt;
    if (prompt == last_ || wanted.count(prompt) != 0) continue;
    const auto known = ahead_.find(prompt);
    if (known != ahead_.end()) {
      wanted.insert(*known);
      continue;
    }
    const auto task = std::make_shared<std::packaged_task<Condition()>>([this, prompt] {
      const c10::InferenceMode inference;
      return encoder_.encode(*prompt);
    });
    wanted.emplace(prompt, task->get_future().share());
    worker_.add([task] { (*task)(); });
  }
  ahead_ = std::move(wanted);
}

}  // namespace lamplighter
