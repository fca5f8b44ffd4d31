// make_gallery TITLE MODEL PLANNED < manifest.jsonl > index.html: writes the page of a run from its manifest.
#include <iostream>
#include <string>
#include <vector>

#include "batch/gallery/gallery.h"
#include "tests/program.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  return run_program("make_gallery TITLE MODEL PLANNED < manifest.jsonl > index.html", count == 4, [&] {
    std::vector<Record> records;
    for (std::string line; std::getline(std::cin, line);) {
      const std::string where = "manifest.jsonl line " + std::to_string(records.size() + 1);
      records.push_back(parse_record(parse_json(line, where, ExitCode::input), where));
    }
    std::cout << gallery_page({arguments[1], arguments[2], std::stoull(arguments[3])}, records);
  });
}
