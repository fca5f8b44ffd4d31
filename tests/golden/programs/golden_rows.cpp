// golden_rows ROWS COLUMNS AHEAD: prints the passes of row-parallel decoding as JSON. A pass has the
// positions that it feeds ("fed"), the indices of their codes in decoding order ("codes"), and the positions
// that it decides ("produced").
#include <iostream>
#include <string>

#include "base/json.h"
#include "draft/rows/zipar_plan.h"
#include "tests/program.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  return run_program("golden_rows ROWS COLUMNS AHEAD", count == 4, [&] {
    const ZiparPlan plan =
        plan_zipar(std::stoll(arguments[1]), std::stoll(arguments[2]), std::stoll(arguments[3]));
    Json passes = Json::array();
    for (const ZiparPlan::Pass& pass : plan.passes) {
      Json fed = Json::array(), codes = Json::array(), produced = Json::array();
      for (const ZiparPlan::Query& query : pass) {
        fed.push_back(query.position);
        codes.push_back(query.code);
        if (query.decides) produced.push_back(query.position + 1);
      }
      passes.push_back({{"fed", fed}, {"codes", codes}, {"produced", produced}});
    }
    std::cout << Json{{"order", plan.order}, {"passes", passes}}.dump() << '\n';
  });
}
