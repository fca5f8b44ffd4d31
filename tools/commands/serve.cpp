#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "bench/auto_method.h"
#include "commands.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "propose/registry.h"
#include "serve/service.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/serve/http.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kKeyVariable = "LAMPLIGHTER_API_KEY";
constexpr std::size_t kMaxKey = 4096;                 // bytes
constexpr std::int64_t kMostSeconds = 1'000'000'000;  // clocks count nanoseconds

struct ServeFlags {
  std::vector<std::string> models;
  ModelFlags model;  // how they run
  MethodFlags method;
  TalkFlags talk;
  HttpOptions http;
  ServiceOptions service;
  std::string key_file;
  std::int64_t queue = 64, url_seconds = 600;

  void add(CLI::App& command);
  void check() const;
  std::string api_key() const;
};

void ServeFlags::add(CLI::App& command) {
  begin_group(command, "Model and machine");
  command
      .add_option("-m,--model", models,
                  "Bundle folder; may be given several times (environment: LAMPLIGHTER_MODEL; default: the "
                  "demo bundle)")
      ->envname("LAMPLIGHTER_MODEL")
      ->allow_extra_args(false)
      ->type_name("DIR");
  method.add(command);
  model.add_runtime(command);
  model.add_batch_size(command);
  begin_group(command, "Address");
  command.add_option("--host", http.host, "Address to listen on (default: 127.0.0.1, this machine alone)")
      ->type_name("ADDRESS");
  command.add_option("--port", http.port, "0 = any that is free, which is printed (default: 8080)")
      ->type_name("N");
  command
      .add_option("--api-key", key_file,
                  std::string("File with the key that clients have to give (environment: ") + kKeyVariable +
                      ", the key itself; default: none)")
      ->type_name("FILE");
  command.add_option("--cors", http.cors, "Origin of web pages that may ask, * = all (default: none)")
      ->type_name("ORIGIN");
  begin_group(command, "Limits");
  command.add_option("--queue", queue, "Pictures that may wait, for every model (default: 64)")
      ->type_name("N");
  command.add_option("--max-pictures", service.limits.pictures, "Pictures of a request (default: 10)")
      ->type_name("N");
  command.add_option("--max-pixels", service.limits.pixels, "Pixels of a picture (default: 4194304)")
      ->type_name("N");
  command.add_option("--max-prompt", service.limits.prompt_bytes, "Bytes of a caption (default: 8192)")
      ->type_name("BYTES");
  command.add_option("--max-body", http.body_bytes, "Bytes of a request (default: 1048576)")
      ->type_name("BYTES");
  command
      .add_option("--deadline", service.limits.deadline_s,
                  "Seconds from a request to its last picture; requests may ask for less (default: 600)")
      ->type_name("SECONDS");
  command.add_option("--url-lifetime", url_seconds, "Seconds that pictures by url stay (default: 600)")
      ->type_name("N");
  talk.add(command);
  command.add_flag("--log-prompts", http.log_prompts, "Print the captions of requests");
}

void ServeFlags::check() const {
  const auto refuse = [](const char* flag, auto value, auto bound, const char* words) {
    std::ostringstream line;
    line << flag << ": got " << value << ", expected " << words << bound;
    throw Error(ExitCode::usage, line.str() + (*words == '\0' ? " or more" : ""));
  };
  const auto at_least = [&](const char* flag, auto value, auto least) {
    if (!(value >= least)) refuse(flag, value, least, "");
  };
  const auto lasts = [&](const char* flag, auto seconds, auto least) {
    at_least(flag, seconds, least);
    if (seconds > kMostSeconds) refuse(flag, seconds, kMostSeconds, "at most ");
  };
  at_least("--queue", queue, std::int64_t{0});
  at_least("--max-pictures", service.limits.pictures, std::int64_t{1});
  at_least("--max-pixels", service.limits.pixels, std::int64_t{1});
  at_least("--max-prompt", service.limits.prompt_bytes, std::size_t{1});
  at_least("--max-body", http.body_bytes, std::size_t{1});
  lasts("--deadline", service.limits.deadline_s, 0.001);
  lasts("--url-lifetime", url_seconds, std::int64_t{1});
  at_least("--batch-size", model.runtime.batch_size, 1);
  if (http.port < 0 || http.port > 65535)
    throw Error(ExitCode::usage, "--port: got " + std::to_string(http.port) + ", expected 0 to 65535");
}

std::string ServeFlags::api_key() const {
  const char* variable = std::getenv(kKeyVariable);
  std::string key = variable == nullptr ? "" : variable;
  if (!key_file.empty()) key = read_file(key_file, ExitCode::input, kMaxKey);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.empty() && (!key_file.empty() || variable != nullptr)) {
    throw Error(ExitCode::input, (key_file.empty() ? std::string(kKeyVariable) : "--api-key: " + key_file) +
                                     ": got an empty key, expected one");
  }
  return key;
}

void load(const ServeFlags& flags, Service& service, Terminal& terminal) {
  std::vector<std::string> folders = flags.models;
  if (folders.empty()) folders.push_back(flags.model.folder());
  const RuntimeOptions runtime = flags.model.options();
  for (const std::string& folder : folders) {
    const Manifest manifest = read_manifest(folder);
    require_drawable(manifest);
    const MethodOptions method =
        choose_method(flags.method.options, manifest, runtime, static_cast<std::size_t>(runtime.batch_size),
                      terminal.sayer());
    resolve_method(method, manifest);
    service.add(folder, runtime, method);
  }
}

constexpr auto kTurn = std::chrono::milliseconds(20);

// Until a signal asks to stop and all that was begun is complete.
void wait(Service& service, Http& http, const std::string& address, Terminal& terminal) {
  bool told = false;
  while (stop_signal() == 0) {
    if (service.is_ready() && !std::exchange(told, true)) terminal.result(address);
    std::this_thread::sleep_for(kTurn);
  }
  terminal.say("stopping: no more requests are taken, those that wait are drawn; once more ends at once");
  service.close();
  while (!service.is_idle()) std::this_thread::sleep_for(kTurn);
  http.stop();
}

void serve(ServeFlags flags) {
  if (!has_http()) {
    throw Error(ExitCode::device,
                "serve: this build has no HTTP server; install libcpp-httplib-dev and "
                "build again");
  }
  flags.check();
  Terminal terminal(flags.talk);
  flags.service.queue = static_cast<std::size_t>(flags.queue);
  flags.service.url_lifetime = std::chrono::seconds(flags.url_seconds);
  flags.http.api_key = flags.api_key();
  const OrderlyStop orderly;
  Service service(flags.service);
  load(flags, service, terminal);
  Http http(service, flags.http, terminal);
  const int port = http.bind();
  std::thread answers([&] { http.run(); });
  try {
    wait(service, http, "http://" + flags.http.authority(port), terminal);
  } catch (...) {
    service.close();
    http.stop();
    answers.join();
    throw;
  }
  answers.join();
}

}  // namespace

void add_serve(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Draw pictures for requests over HTTP");
  flags->add(*command);
  add_examples(*command,
               {{"a server for this machine; its address is printed when it is ready", "lamplighter serve"},
                {"a picture by OpenAI's API",
                 "curl -H \"Content-Type: application/json\" -d '{\"prompt\": \"a red boat on the sea at "
                 "dawn\", \"method\": \"sjd\"}' http://127.0.0.1:8080/v1/images/generations"},
                {"for others, with a key", "lamplighter serve --host 0.0.0.0 --api-key key.txt"}});
  command->callback([flags] { serve(*flags); });
}

}  // namespace lamplighter::cli
