#include "pipeline/scheduler/prompt_reader.h"

#include <c10/core/InferenceMode.h>

#include <utility>

namespace lamplighter {

Condition PromptReader::read(const PromptPointer& prompt) {
  if (prompt == last_) return condition_;
  const auto known = ahead_.find(prompt);
  condition_ = known != ahead_.end() ? known->second.get() : encoder_.encode(*prompt);
  last_ = prompt;
  return condition_;
}

void PromptReader::read_ahead(const std::vector<PromptPointer>& prompts) {
  if (!own_thread_) return;
  std::map<PromptPointer, std::shared_future<Condition>> wanted;
  for (const PromptPointer& prompt : prompts) {
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
    if (!worker_) worker_.emplace(true);
    worker_->add([task] { (*task)(); });
  }
  ahead_ = std::move(wanted);
}

}  // namespace lamplighter
