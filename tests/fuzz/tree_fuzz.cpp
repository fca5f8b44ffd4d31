#include "tests/fuzz/fuzz.h"
#include "tree/tree.h"

// An accepted tree survives writing and reading.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  return fuzz::meet([&] {
    const Tree tree = parse_tree(fuzz::text(bytes, size), "tree");
    if (parse_tree(tree_to_json(tree).dump(), "again").paths != tree.paths) std::abort();
  });
}
