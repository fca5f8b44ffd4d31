// golden_rows ROWS COLUMNS AHEAD: the passes of a picture whose rows are drawn side by side, as JSON: of each
// the places that are run ("fed"), the numbers of their codes in the order of drawing ("codes"), and the
// places that are decided ("produced").
#include <iostream>
#include <string>

#include "base/json.h"
#include "tree/open_rows.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  if (count != 4) {
    std::cerr << "usage: golden_rows ROWS COLUMNS AHEAD\n";
    return 2;
  }
  const OpenRows plan =
      open_rows(std::stoll(arguments[1]), std::stoll(arguments[2]), std::stoll(arguments[3]));
  Json passes = Json::array();
  for (const OpenRows::Pass& pass : plan.passes) {
    Json fed = Json::array(), codes = Json::array(), produced = Json::array();
    for (const OpenRows::Row& row : pass) {
      fed.push_back(row.place);
      codes.push_back(row.code);
      if (row.decides) produced.push_back(row.place + 1);
    }
    passes.push_back({{"fed", fed}, {"codes", codes}, {"produced", produced}});
  }
  std::cout << Json{{"order", plan.order}, {"passes", passes}}.dump() << '\n';
  return 0;
}
