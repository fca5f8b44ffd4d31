// make_gallery TITLE MODEL PLANNED < manifest.jsonl > index.html: writes the page of a run from its manifest.
#include <iostream>
#include <string>
#include <vector>

#include "batch/gallery/gallery.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  if (count != 4) {
    std::cerr << "usage: make_gallery TITLE MODEL PLANNED < manifest.jsonl > index.html\n";
    return 2;
  }
  try {
    std::vector<Record> records;
    for (std::string line; std::getline(std::cin, line);) {
      const std::string where = "manifest.jsonl line " + std::to_string(records.size() + 1);
      records.push_back(parse_record(parse_json(line, where, ExitCode::input), where));
    }
    std::cout << gallery_page({arguments[1], arguments[2], std::stoull(arguments[3])}, records);
  } catch (const std::exception& error) {
    std::cerr << "make_gallery: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
