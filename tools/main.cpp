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

#include "batch/failure.h"
#include "bundle/machine.h"
#include "commands/commands.h"
#include "help.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "signals.h"
#include "terminal.h"
#include "usage.h"
#include "values.h"

namespace lamplighter::cli {
namespace {

constexpr int kInternal = 1;

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

// The library begins complaints about an option with its key: "top_k: got -3". Here that is a flag.
std::string with_flag(const CLI::App& app, const Error& error) {
  const std::string message = error.what();
  const bool about_option = error.code() == ExitCode::usage || error.code() == ExitCode::device;
  const auto chosen = app.get_subcommands();
  if (!about_option || chosen.empty()) return message;
  const std::size_t end = std::min(message.find_first_of(" :"), message.size());
  std::string flag = "--" + message.substr(0, end);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return chosen.front()->get_option_no_throw(flag) == nullptr ? message : flag + message.substr(end);
}

int code_of(const Error& error) {
  if (error.code() == ExitCode::interrupted && stop_signal() != 0) return 128 + stop_signal();
  return static_cast<int>(error.code());
}

// Texts for the launcher, as C++.
void print_help_texts(CLI::App& app) {
  const auto literal = [](const std::string& text) {
    return "R\"text(" + text.substr(0, text.find_last_not_of('\n') + 1) + ")text\"";
  };
  std::cout << "inline constexpr const char* kVersionText = " << literal(version_text()) << ";\n"
            << "struct HelpText {\n  const char *command, *text;\n};\n"
            << "inline constexpr HelpText kHelpTexts[] = {\n    {\"\", " << literal(app.help()) << "},\n";
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::cout << "    {\"" << command->get_name() << "\", " << literal(command->help(app.get_name()))
              << "},\n";
  }
  std::cout << "};\n";
}

int run(int count, char** arguments) {
  CLI::App app("Draws pictures with visual autoregressive models.", "lamplighter");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.formatter(std::make_shared<Help>());
  add_generate(app);
  add_batch(app);
  add_serve(app);
  add_decode(app);
  add_inspect(app);
  add_check(app);
  add_neighbours(app);
  add_tune_tree(app);
  add_bench(app);
  add_devices(app);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) check_values(*command);
  add_examples(app,
               {{"draw a picture with the demo model",
                 "lamplighter generate -p \"a white lighthouse on the coast at dusk\" -o lighthouse.png"},
                {"what the model knows", "lamplighter inspect"},
                {"all about a command", "lamplighter generate --help"}});
  app.footer(
      "Exit codes\n  0 done   2 flags   3 input   4 bundle   5 device   6 memory   7 output   8 some items "
      "failed"
      "   130, 143 stopped\n\n" +
      app.get_footer());
  if (count == 2 && std::string_view(arguments[1]) == "--help-texts") {
    print_help_texts(app);
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

// Of the machine, which may strike anywhere, and our own.
int report_other(const std::exception& error) {
  if (const std::optional<Error> told = machine_error(error)) return fail(code_of(*told), told->what());
  return fail(kInternal, "internal: " + first_line(error));
}

// Libraries allocate where nothing may be thrown: nlohmann::json does when a tree of it is destroyed. When
// memory ends there, the program ends as it does elsewhere; the line asks for no more memory.
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
  std::set_terminate(end_without_memory);
  try {
    install_signal_handlers();
    code = run(count, arguments);
  } catch (const std::exception& error) {
    code = report_other(error);
  }
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);  // taking the libraries down takes as long as a tenth of a picture
}
