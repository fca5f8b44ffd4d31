// make_bench_page < page.json > page.html: writes the page of a bench run from {"title", "heading", "tables":
// [{"head", "rows"}], "remarks", "report", "scores", "growth", "images": [{"caption", "method",
// "committed"}]}. An image is a pink square of as many cells as `committed` has numbers, in two rows.
#include <iostream>
#include <iterator>
#include <string>

#include "bench/page/page.h"
#include "image/canvas.h"

int main() {
  using namespace lamplighter;
  try {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    const Json json = parse_json(text, "page.json", ExitCode::input);
    BenchPage page;
    page.title = json.at("title");
    page.heading = json.at("heading").get<std::vector<std::string>>();
    for (const Json& table : json.at("tables"))
      page.tables.push_back({table.at("head").get<std::vector<std::string>>(),
                             table.at("rows").get<std::vector<std::vector<std::string>>>()});
    page.remarks = json.at("remarks").get<std::vector<std::string>>();
    page.report = json.at("report");
    page.scores = json.at("scores");
    page.growth = json.at("growth");
    for (const Json& image : json.at("images")) {
      const auto committed = image.at("committed").get<std::vector<std::int64_t>>();
      page.images.push_back(
          {image.at("caption"),
           image.at("method"),
           42,
           2.5,
           {make_canvas(32, 32, {216, 27, 96}), 2, static_cast<int>(committed.size() / 2), committed}});
    }
    std::cout << bench_page(page);
  } catch (const std::exception& error) {
    std::cerr << "make_bench_page: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
