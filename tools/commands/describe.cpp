#include <memory>
#include <utility>

#include "base/format.h"
#include "base/json.h"
#include "draft/options/option_values.h"
#include "draft/options/options.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"
#include "tools/commands/commands.h"
#include "tools/fit_flags.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct DescribeFlags {
  ModelFlags model;
  LogFlags logging;
  MethodFlags method;
  FitFlags fit;
  DescribeRequest request;
  std::string image, seed = "42";
  bool json = false;
};

Json to_json(const Description& description, std::uint64_t seed) {
  const Statistics& statistics = description.statistics;
  Json json{{"text", description.text},
            {"finish_reason", description.is_cut ? "length" : "stop"},
            {"seed", seed},
            {"prompt_tokens", description.prompt_tokens},
            {"tokens", description.ids.size()},
            {"target_passes", statistics.target_passes},
            {"temperature", shortest(description.sampling.temperature)},
            {"top_k", description.sampling.top_k},
            {"top_p", shortest(description.sampling.top_p)},
            {"method", description.method.method}};
  for (const MethodOption& option : method_options()) {
    if (is_set(description.method, option)) json[option.key] = to_json(description.method, option);
  }
  return json;
}

void describe(const DescribeFlags& flags) {
  Terminal terminal(flags.logging);
  const Manifest manifest = read_manifest(flags.model.folder());
  DescribeRequest request = flags.request;
  request.seed = parse_seed(flags.seed);
  request.fit = flags.fit.fit();
  TextToImage::check(manifest, request);
  request.image = read_image(flags.image);
  TextToImage engine(manifest.directory, flags.model.options());
  const OrderlyStop orderly;
  const Description description =
      engine.describe(request, flags.method.options, [&](const std::string& more) {
        if (!flags.json) terminal.stream(more);
        return stop_signal() == 0;
      });
  terminal.result(flags.json ? to_text(to_json(description, request.seed)) : "");
  terminal.detail(summary(description.statistics));
  for (const std::string& line : details(description.statistics)) terminal.detail(line);
  if (description.is_cut)
    terminal.log("note: the answer ends at " + counted(description.ids.size(), "token") +
                 ", as many as it may have; --max-tokens allows more");
}

void add_sampling(CLI::App& command, DescribeRequest& request) {
  begin_group(command, "Sampling");
  constexpr const char* kUsual = "the bundle's";
  common(command, command.add_option("--temperature", request.temperature,
                                     "0 = greedy, always the most probable token"))
      ->type_name("X")
      ->default_str(kUsual);
  command.add_option("--top-k", request.top_k, "Sample from the K most probable tokens; 0 = all")
      ->type_name("K")
      ->default_str(kUsual);
  command
      .add_option("--top-p", request.top_p,
                  "Sample from the most probable tokens up to this probability mass; 1 = all")
      ->type_name("X")
      ->default_str(kUsual);
}

}  // namespace

void add_describe(CLI::App& app) {
  auto flags = std::make_shared<DescribeFlags>();
  flags->request.prompt = "Describe the image.";
  CLI::App* command = app.add_subcommand("describe", "Describe an image, with bundles that read images");
  common(*command, command->add_option("image", flags->image, "PNG, JPEG or WebP file; - = standard input"))
      ->required()
      ->type_name("IMAGE");
  common(*command, command->add_option("-p,--prompt", flags->request.prompt, "Question about the image"))
      ->type_name("TEXT")
      ->capture_default_str();
  common(*command,
         command->add_option("--max-tokens", flags->request.max_tokens, "Most tokens of the answer"))
      ->type_name("N")
      ->default_str("256");
  command->add_option("--seed", flags->seed, "Seed of the answer; -1 = random")
      ->type_name("N")
      ->capture_default_str();
  flags->fit.add_fit(*command);
  flags->model.add_model(*command, false);
  flags->model.add_runtime(*command);
  add_sampling(*command, flags->request);
  flags->method.add(*command);
  begin_group(*command, "Options");
  common(*command,
         command->add_flag("--json", flags->json, "Print the answer and its cost as one line of JSON"));
  flags->logging.add(*command);
  add_examples(*command,
               {{"ask about an image",
                 "lamplighter describe photo.jpg -m bundle -p \"What stands in front of the house?\""}});
  command->callback([flags] { describe(*flags); });
}

}  // namespace lamplighter::cli
