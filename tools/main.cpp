#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <new>

#include "commands.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "signals.h"

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

// The first line: messages of libraries bring stack traces along.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

int fail(int code, const std::string& message) {
  std::cerr << "lamplighter: error: " << first_line(message) << std::endl;
  return code;
}

// What was mistyped, with the subcommand's help named once.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  std::string message = first_line(error.what());
  if (!message.empty() && message.back() == '.') message.pop_back();
  return fail(static_cast<int>(ExitCode::usage), message + "; see lamplighter" + command + " --help");
}

int code_of(const Error& error) {
  if (error.code() == ExitCode::interrupted && stop_signal() != 0) return 128 + stop_signal();
  return static_cast<int>(error.code());
}

int run(int count, char** arguments) {
  CLI::App app("Draws pictures with visual autoregressive models.", "lamplighter");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  add_generate(app);
  add_decode(app);
  add_inspect(app);
  add_check(app);
  add_bench(app);
  add_devices(app);
  try {
    app.parse(count, arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return report_usage(app, error);
  } catch (const Error& error) {
    return fail(code_of(error), error.what());
  } catch (const c10::OutOfMemoryError& error) {
    return fail(static_cast<int>(ExitCode::memory),
                std::string("out of memory: ") + error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return fail(kInternal, std::string("internal: ") + error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return fail(static_cast<int>(ExitCode::memory), "out of memory; a smaller --batch-size needs less");
  } catch (const std::exception& error) {
    return fail(kInternal, std::string("internal: ") + error.what());
  }
}

}  // namespace
}  // namespace lamplighter::cli

int main(int count, char** arguments) {
  lamplighter::cli::install_signal_handlers();
  return lamplighter::cli::run(count, arguments);
}
