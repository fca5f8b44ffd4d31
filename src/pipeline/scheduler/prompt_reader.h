#pragma once

#include <future>
#include <map>
#include <optional>
#include <vector>

#include "base/worker.h"
#include "decode/prompts.h"
#include "pipeline/resolved_request.h"

namespace lamplighter {

// Encodes prompts, upcoming ones on a thread of its own beside the decode loop.
class PromptReader {
 public:
  // The encoder outlives the reader. `own_thread`: whether it reads ahead at all.
  PromptReader(const PromptEncoder& encoder, bool own_thread) : encoder_(encoder), own_thread_(own_thread) {}

  // The condition of a prompt, as PromptEncoder::encode gives it. The newest one is kept. Throws what
  // encoding throws.
  Condition read(const PromptPointer& prompt);
  // Begins with these prompts and drops others that were read ahead.
  void read_ahead(const std::vector<PromptPointer>& prompts);

 private:
  const PromptEncoder& encoder_;
  bool own_thread_;
  PromptPointer last_;
  Condition condition_;  // of that prompt
  std::map<PromptPointer, std::shared_future<Condition>> ahead_;
  std::optional<Worker> worker_;
};

}  // namespace lamplighter
