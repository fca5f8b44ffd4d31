#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/bpe_model.h"

namespace lamplighter {

// All 256 byte characters with their bytes as ids, then `merges` ("left right") with the next ids.
inline nlohmann::json make_vocabulary(const std::vector<std::string>& merges) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    append_utf8(character, byte_character(static_cast<unsigned char>(byte)));
    vocabulary[character] = byte;
  }
  for (std::string entry : merges) {
    entry.erase(entry.find(' '), 1);
    if (!vocabulary.contains(entry)) vocabulary[entry] = vocabulary.size();
  }
  return vocabulary;
}

// A tokenizer.json with one ByteLevel stage and one special token, <end>.
inline nlohmann::json make_tokenizer(const std::vector<std::string>& merges) {
  const nlohmann::json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  nlohmann::json vocabulary = make_vocabulary(merges);
  const std::size_t end = vocabulary.size();
  vocabulary["<end>"] = end;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens",
           {{{"id", end},
             {"content", "<end>"},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

// A temporary file.
class BpeFile {
 public:
  explicit BpeFile(const std::string& text)
      : path_(testing::TempDir() + "bpe_test." + std::to_string(getpid()) + ".json") {
    std::ofstream(path_) << text;
  }
  explicit BpeFile(const nlohmann::json& file) : BpeFile(file.dump()) {}
  ~BpeFile() { std::remove(path_.c_str()); }
  BpeFile(const BpeFile&) = delete;
  BpeFile& operator=(const BpeFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace lamplighter
