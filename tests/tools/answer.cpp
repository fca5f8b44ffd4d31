// answer BUNDLE: reads JSON lines {"image": file, "question", "seed", "max_tokens"} and writes {"prompt":
// ids, "ids": of the answer, "ended": whether one of the ids that end texts follows}, at the bundle's
// defaults.
#include <iostream>
#include <string>
#include <vector>

#include "base/json.h"
#include "bundle/manifest/text.h"
#include "pipeline/describe.h"
#include "pipeline/pixel_encoder.h"
#include "tests/program.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  return run_program("answer BUNDLE < requests.jsonl", count == 2, [&] {
    TextToImage engine(arguments[1]);
    const Manifest& manifest = engine.manifest();
    require_text(manifest);
    const Placement placement;
    const RuntimeOptions runtime;
    const Describer describer(manifest, placement, runtime);
    const Grid& grid = manifest.grids.front();
    for (std::string line; std::getline(std::cin, line);) {
      const Json json = parse_json(line, "request", ExitCode::input);
      JsonReader reader(json, "request", ExitCode::input);
      DescribeRequest request;
      request.image = fit_to_bundle(manifest, read_image(reader.text("image")),
                                    {grid.width, grid.height, request.fit}, "image");
      request.prompt = reader.text("question");
      request.seed = reader.unsigned_integer("seed");
      request.max_tokens = reader.integer("max_tokens", 1);
      const Question question = describer.resolve(request, {});
      const Description answer = engine.describe(request);
      std::vector<std::int64_t> prompt = question.before;
      for (const std::int32_t code : engine.encode(request.image).ids)
        prompt.push_back(manifest.tokens.first_image_id + code);
      prompt.insert(prompt.end(), question.after.begin(), question.after.end());
      std::cout << Json{{"prompt", prompt}, {"ids", answer.ids}, {"ended", !answer.is_cut}}.dump() << '\n'
                << std::flush;
    }
  });
}
