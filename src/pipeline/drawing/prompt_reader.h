#pragma once

#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include "decode/prompts.h"
#include "pipeline/drawing/worker.h"
#include "pipeline/requests/request.h"

namespace lamplighter {

// Encodes prompts, those that come next on a thread of its own beside the decoding.
class PromptReader {
 public:
  // Both outlive the reader. Without a thread nothing is read ahead.
  PromptReader(const PromptEncoder& encoder, const std::vector<ResolvedRequest>& requests, bool own_thread)
      : encoder_(encoder), requests_(requests), own_thread_(own_thread), worker_(own_thread) {}

  // The condition of a request, as PromptEncoder::encode gives it; what was read before it is dropped. Throws
  // what encoding it throws.
  Condition read(std::size_t request);
  // Begins with those of requests begin .. end - 1, and drops others that wait.
  void read_ahead(std::size_t begin, std::size_t end);

 private:
  using Prompt = std::shared_ptr<const PromptIds>;  // neighbours may share one

  const PromptEncoder& encoder_;
  const std::vector<ResolvedRequest>& requests_;
  bool own_thread_;
  Prompt last_;
  Condition condition_;  // of that prompt
  std::map<Prompt, std::shared_future<Condition>> ahead_;
  Worker worker_;
};

}  // namespace lamplighter
