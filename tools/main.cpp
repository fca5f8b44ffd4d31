#include <torch/headeronly/version.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "batch/failure.h"
#include "device/machine.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "tools/commands/commands.h"
#include "tools/help.h"
#include "tools/known_texts.h"
#include "tools/signals.h"
#include "tools/terminal.h"
#include "tools/usage.h"
#include "tools/values.h"

namespace lamplighter::cli {
namespace {

constexpr int kInternal = 1;

HelpList exit_codes() {
  return {"Exit codes",
          {{"0", "done"},
           {"2", "wrong flags"},
           {"3", "wrong input"},
           {"4", "a bundle that is damaged, or lacks something"},
           {"5", "no such device"},
           {"6", "out of memory"},
           {"7", "a file that cannot be written"},
           {"8", "a part of the images failed"},
           {"130, 143", "stopped by SIGINT or SIGTERM"}}};
}

std::string version_text() {
  std::string text = std::string("lamplighter ") + kVersion + " (Torch " + TORCH_VERSION;
#if defined(LAMPLIGHTER_WITH_CUDA)
  return text + ", CUDA kernels for sm_80 and sm_90)";
#else
  return text + ", no CUDA kernels)";
#endif
}

int fail(int code, const std::string& message) {
  print_error(message);
  return code;
}

// Messages of the library name options by their keys: "top_k: got -3", "lambda is read by rule lantern++;
// this run uses rule exact". Turns the keys into flags.
std::string with_flag(const CLI::App& app, const Error& error) {
  std::string message = error.what();
  const bool about_option = error.code() == ExitCode::usage || error.code() == ExitCode::device;
  const auto chosen = app.get_subcommands();
  if (!about_option || chosen.empty()) return message;
  const auto replace_key = [&](std::size_t begin) {
    const std::size_t end = std::min(message.find_first_of(" :", begin), message.size());
    std::string flag = "--" + message.substr(begin, end - begin);
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (chosen.front()->get_option_no_throw(flag) != nullptr) message.replace(begin, end - begin, flag);
  };
  for (const std::string_view before : {"; this run uses ", " is read by "}) {
    const std::size_t begin = message.find(before);
    if (begin != std::string::npos) replace_key(begin + before.size());
  }
  replace_key(0);
  return message;
}

int code_of(const Error& error) {
  if (error.code() == ExitCode::interrupted && stop_signal() != 0) return 128 + stop_signal();
  return static_cast<int>(error.code());
}

int run(int count, char** arguments) {
  CLI::App app("Generates images with visual autoregressive models and speculative decoding.", "lamplighter");
  app.set_version_flag("-V,--version", version_text());
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "Print the common options and exit");
  app.set_help_all_flag("--help-all", "Print all options and exit");
  app.formatter(std::make_shared<Help>());
  // In the order of --help, which is the order of use.
  add_generate(app);
  add_batch(app);
  add_serve(app);
  add_bench(app);
  add_tune_tree(app);
  add_neighbours(app);
  add_inspect(app);
  add_check(app);
  add_decode(app);
  add_encode(app);
  add_describe(app);
  add_devices(app);
  add_help(app);
  add_completion(app);
  add_man(app);
  for (CLI::App* command : commands_of(app)) check_values(*command);
  add_examples(
      app,
      {{"generate an image with the demo model",
        "lamplighter generate -p \"a white lighthouse on the coast at dusk\" -o lighthouse.png"},
       {"show the contents of the demo bundle and the methods that it supports", "lamplighter inspect"},
       {"the common options of a command; --help-all prints all of them", "lamplighter generate --help"}});
  Help::page(app).lists.emplace_back(exit_codes);
  if (count == 2 && std::string_view(arguments[1]) == "--launcher-texts") {
    print_known_texts(app, std::cout);
    return 0;
  }
  try {
    app.parse(count, arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(static_cast<int>(ExitCode::usage), describe_usage(app, error));
  } catch (const Error& error) {
    return fail(code_of(error), with_flag(app, error));
  }
}

// Reports a failure of the machine (memory, disk, device) with its exit code, any other as internal.
int report_other(const std::exception& error) {
  if (const std::optional<Error> known = machine_error(error)) return fail(code_of(*known), known->what());
  return fail(kInternal, "internal: " + first_line(error));
}

// Libraries allocate in noexcept code: nlohmann::json does when it destroys a tree. When memory runs out
// there, the exit code is the usual one. Printing the line allocates nothing.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    std::fputs("lamplighter: error: out of memory\n", stderr);
    std::_Exit(static_cast<int>(ExitCode::memory));
  } catch (...) {
  }
  std::abort();
}

}  // namespace
}  // namespace lamplighter::cli

int main(int count, char** arguments) {
  using namespace lamplighter::cli;
  int code = kInternal;
  lamplighter::reserve_standard_descriptors();
  std::set_terminate(end_without_memory);
  try {
    install_signal_handlers();
    code = run(count, arguments);
  } catch (const std::exception& error) {
    code = report_other(error);
  }
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);  // unloading the libraries would take a tenth of the time of an image
}
