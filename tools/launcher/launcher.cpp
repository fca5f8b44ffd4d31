// The program `lamplighter`. Help and version are known when it is built; everything else is the engine's,
// which takes long to load for the libraries it needs, and takes this process's place.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tools/help_texts.h"  // kVersionText; kHelpTexts: command ("" for the program) and text

namespace {

bool asks_for_help(std::string_view word) {
  return word == "--help" || word == "-h";
}

// What the engine would print, where the command line asks for nothing else.
const char* known_text(int count, char** arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "--version") return kVersionText;
  if (count < 2 || count > 3 || !asks_for_help(arguments[count - 1])) return nullptr;
  const std::string_view command = count == 3 ? arguments[1] : "";
  for (const auto& [name, text] : kHelpTexts) {
    if (command == name) return text;
  }
  return nullptr;
}

int print(const char* text) {
  constexpr int kOutput = 7;  // of the engine's exit codes
  if (std::puts(text) >= 0 && std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "lamplighter: error: cannot write to standard output: %s\n", std::strerror(errno));
  return kOutput;
}

std::string engine_path() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  const std::string_view path(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return std::string(path.substr(0, path.rfind('/') + 1)) + "lamplighter-engine";
}

// How the C library keeps the engine's memory, where the environment does not say so already: large pages, a
// sixth of the time of a picture; and what a picture frees stays for the next one, a fifth of the time that
// painting takes, but for the largest tensors, which would leave the heap full of holes. It is read when a
// process starts.
constexpr const char* kMemory =
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=16777216:glibc.malloc.trim_threshold=67108864";

}  // namespace

int main(int count, char** arguments) {
  if (const char* text = known_text(count, arguments)) return print(text);
  const std::string engine = engine_path();
  ::setenv("GLIBC_TUNABLES", kMemory, 0);
  ::execv(engine.c_str(), arguments);
  std::fprintf(stderr, "lamplighter: error: cannot start %s: %s; build or install it again\n", engine.c_str(),
               std::strerror(errno));
  return 1;
}
