// golden_guidance BUNDLE: reads JSON lines {"width", "height", "cfg_scale"} and writes {"varying", "scales"},
// the guidance scale of every code of an image.
#include <iostream>
#include <string>

#include "base/json.h"
#include "bundle/manifest/guidance.h"
#include "tests/program.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  return run_program("golden_guidance BUNDLE < requests.jsonl", count == 2, [&] {
    const Manifest manifest = read_manifest(arguments[1]);
    for (std::string line; std::getline(std::cin, line);) {
      const Json request = parse_json(line, "request", ExitCode::input);
      JsonReader reader(request, "request", ExitCode::input);
      const Grid& grid = find_grid(manifest, static_cast<int>(reader.integer("width")),
                                   static_cast<int>(reader.integer("height")));
      SamplingOptions sampling = manifest.sampling;
      sampling.cfg_scale = static_cast<float>(reader.number("cfg_scale"));
      std::cout << Json{{"varying", guidance_varies(manifest.schedule, sampling)},
                        {"scales", guidance_scales(manifest.schedule, grid, sampling, grid.tokens())}}
                       .dump()
                << '\n';
    }
  });
}
