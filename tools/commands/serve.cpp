#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/format.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "serve/http/origin.h"
#include "serve/service.h"
#include "tools/commands/commands.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/serve/http.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kKeyVariable = "LAMPLIGHTER_API_KEY";
constexpr std::size_t kMaxKey = 4096;                 // bytes
constexpr std::size_t kLeastKey = 16;                 // of --api-key: a mistyped name of a file is no key
constexpr std::int64_t kMostSeconds = 1'000'000'000;  // clocks count nanoseconds

// The key that clients send; empty: none is needed.
struct ApiKey {
  std::string value, source;  // source: for messages
};

const std::vector<std::string> kGuidance{"auto", "always", "never"};  // as ClientGuidance

struct ServeFlags {
  std::vector<std::string> models;
  ModelFlags model;  // how they run
  MethodFlags method;
  LogFlags logging;
  HttpOptions http;
  ServiceOptions service;
  std::string key, guidance = "auto";  // key: itself, or its file
  std::vector<std::string> aliases;
  std::int64_t queue = 64, url_seconds = 600;

  void add(CLI::App& command);
  void check() const;
  ApiKey api_key() const;
  void read_words();
  void read_origins();
};

void ServeFlags::add(CLI::App& command) {
  begin_group(command, "Address");
  common(command, command.add_option("--host", http.host, "Address to listen on; 0.0.0.0 = all networks"))
      ->type_name("ADDRESS")
      ->capture_default_str();
  common(command, command.add_option("--port", http.port, "Port; 0 = any free one, which is printed"))
      ->type_name("N")
      ->capture_default_str();
  common(command,
         command.add_option(
             "--api-key", key,
             "File with the key that clients must send; or the key itself (" + std::to_string(kLeastKey) +
                 " characters or more, without /). Other users of this machine can see a key on "
                 "the command line, but not one in the variable " +
                 kKeyVariable))
      ->type_name("KEY|FILE")
      ->default_str("no key");
  command.add_option("--cors", http.cors, "Origin of the web pages that may send requests; * = all")
      ->type_name("ORIGIN")
      ->default_str("none");
  command
      .add_option(
          "--allow-host", http.hosts,
          "Name by which clients may call this server without a key, besides addresses, localhost and "
          "--host; may be given several times, * = any")
      ->allow_extra_args(false)
      ->type_name("NAME");
  begin_group(command, "Model and machine");
  common(command,
         command.add_option("-m,--model", models, std::string(kModelHelp) + "; may be given several times"))
      ->envname("LAMPLIGHTER_MODEL")
      ->allow_extra_args(false)
      ->type_name("DIR")
      ->default_str(kModelUsual);
  method.add(command);
  model.add_runtime(command);
  model.add_batch_size(command);
  begin_group(command, "Clients");
  command
      .add_option("--model-alias", aliases,
                  "Another name that requests may give a model; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME=MODEL");
  command.add_flag("--strict", service.rules.strict,
                   "Refuse models, sizes and fields that this server does not have; without it, it takes the "
                   "nearest and answers with a warning");
  with_choices(command,
               command.add_option(
                   "--webui-guidance", guidance,
                   "Whether cfg_scale of the web UI's API counts: always, never, or auto: unless it is 7, "
                   "which its clients send by themselves"),
               kGuidance)
      ->type_name("WHEN")
      ->capture_default_str();
  begin_group(command, "Limits");
  common(command, command.add_option("--queue", queue, "Images that may wait, for each model"))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--max-images", service.rules.limits.images, "Images of a request")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--max-pixels", service.rules.limits.pixels, "Pixels of an image")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--max-prompt", service.rules.limits.prompt_bytes, "Bytes of a caption")
      ->type_name("BYTES")
      ->capture_default_str();
  command.add_option("--max-body", http.body_bytes, "Bytes of a request")
      ->type_name("BYTES")
      ->capture_default_str();
  common(command, command.add_option("--deadline", service.rules.limits.deadline_s,
                                     "Seconds from a request to its last image; a request may ask for less"))
      ->type_name("SECONDS")
      ->capture_default_str();
  command.add_option("--url-lifetime", url_seconds, "Seconds that an image stays at its URL")
      ->type_name("N")
      ->capture_default_str();
  logging.add(command);
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
  at_least("--max-images", service.rules.limits.images, std::int64_t{1});
  at_least("--max-pixels", service.rules.limits.pixels, std::int64_t{1});
  at_least("--max-prompt", service.rules.limits.prompt_bytes, std::size_t{1});
  at_least("--max-body", http.body_bytes, std::size_t{1});
  lasts("--deadline", service.rules.limits.deadline_s, 0.001);
  lasts("--url-lifetime", url_seconds, std::int64_t{1});
  at_least("--batch-size", model.runtime.batch_size, 1);
  if (http.port < 0 || http.port > 65535)
    throw Error(ExitCode::usage, "--port: got " + std::to_string(http.port) + ", expected 0 to 65535");
}

ApiKey ServeFlags::api_key() const {
  const char* variable = std::getenv(kKeyVariable);
  if (key.empty() && variable == nullptr) return {};
  ApiKey found;
  std::error_code ignored;
  if (key.empty()) {
    found = {variable, std::string("in ") + kKeyVariable};
  } else if (key.find('/') != std::string::npos || std::filesystem::exists(key, ignored)) {
    found = {read_file(key, ExitCode::input, kMaxKey), "in the file " + quote(key)};
  } else if (key.size() >= kLeastKey) {
    return {key, "that --api-key holds, which names no file"};
  } else {
    throw Error(ExitCode::input, "--api-key: got " + counted(key.size(), "character") +
                                     " that name no file, expected a file, or a key of " +
                                     std::to_string(kLeastKey) + " or more");
  }
  const std::size_t end = found.value.find_last_not_of("\r\n");
  found.value.resize(end == std::string::npos ? 0 : end + 1);
  if (found.value.empty())
    throw Error(ExitCode::input, "--api-key: got an empty key " + found.source + ", expected one");
  return found;
}

// Browsers send hosts and origins in one form each: others would never match.
void ServeFlags::read_origins() {
  for (const std::string& host : http.hosts) {
    if (host != "*" && !is_host(host))
      throw Error(ExitCode::usage,
                  "--allow-host: got " + quote(host) + ", expected a name, such as lamp.example, or *");
  }
  if (http.cors.empty() || http.cors == "*") return;
  const std::string origin = origin_of(http.cors);
  if (origin.empty())
    throw Error(ExitCode::usage,
                "--cors: got " + quote(http.cors) +
                    ", expected the front of an address, such as https://page.example, or *");
  http.cors = origin;
}

// Flags whose words have a meaning of their own.
void ServeFlags::read_words() {
  const auto when = std::find(kGuidance.begin(), kGuidance.end(), guidance);
  if (when == kGuidance.end())
    throw Error(ExitCode::usage,
                "--webui-guidance: got " + quote(guidance) + ", expected " + list_of(kGuidance));
  service.rules.webui_guidance = static_cast<ClientGuidance>(when - kGuidance.begin());
  for (const std::string& alias : aliases) {
    const std::size_t middle = alias.find('=');
    if (middle == std::string::npos || middle == 0 || middle + 1 == alias.size())
      throw Error(ExitCode::usage, "--model-alias: got " + quote(alias) + ", expected NAME=MODEL");
    service.aliases[alias.substr(0, middle)] = alias.substr(middle + 1);
  }
}

void load(const ServeFlags& flags, Service& service) {
  std::vector<std::string> folders = flags.models;
  if (folders.empty()) folders.push_back(flags.model.folder());
  const RuntimeOptions runtime = flags.model.options();
  for (const std::string& folder : folders) service.add(folder, runtime, flags.method.options);
  for (const auto& [alias, name] : flags.service.aliases) {
    if (service.find(name) == nullptr)
      throw Error(ExitCode::usage,
                  "--model-alias: got " + quote(alias + "=" + name) + ", expected the name of a model");
  }
}

constexpr auto kTurn = std::chrono::milliseconds(20);

// Until a signal asks to stop and all that was begun is complete.
void wait(Service& service, Http& http, const std::string& address, Terminal& terminal) {
  bool is_announced = false;
  while (stop_signal() == 0) {
    if (service.is_ready() && !std::exchange(is_announced, true)) terminal.result(address);
    std::this_thread::sleep_for(kTurn);
  }
  terminal.log(
      "stopping: new requests are refused, waiting ones are completed; a second signal stops at once");
  service.close();
  while (!service.is_idle()) std::this_thread::sleep_for(kTurn);
  http.stop();
}

void serve(ServeFlags flags) {
  flags.check();
  flags.read_words();
  flags.read_origins();
  Terminal terminal(flags.logging);
  flags.service.queue = static_cast<std::size_t>(flags.queue);
  flags.service.url_lifetime = std::chrono::seconds(flags.url_seconds);
  const ApiKey key = flags.api_key();
  if (!key.value.empty()) terminal.log("clients must send the key " + key.source);
  flags.http.api_key = key.value;
  const OrderlyStop orderly;
  share_heaps();
  Service service(flags.service);
  load(flags, service);
  terminal.write_in_background();  // a log that nobody reads must not stop the server
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
  CLI::App* command = app.add_subcommand("serve", "Serve images over HTTP, with a web page");
  flags->add(*command);
  add_examples(
      *command,
      {{"a server for this machine, which prints its address when it is ready",
        "lamplighter serve --method sjd --port 8080"},
       {"a request with the fields of OpenAI's API",
        "curl -H \"Content-Type: application/json\" -d '{\"prompt\": \"a red boat at dawn\"}' "
        "http://127.0.0.1:8080/v1/images/generations"},
       {"a server for other machines, with a key", "lamplighter serve --host 0.0.0.0 --api-key key.txt"}});
  command->callback([flags] { serve(*flags); });
}

}  // namespace lamplighter::cli
