#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "serve/http/server.h"
#include "serve/service.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any that is free
  std::size_t body_bytes = std::size_t{1} << 20;
  std::string api_key;             // empty: no key is needed
  std::string cors;                // origin of pages that may send requests; empty: none
  std::vector<std::string> hosts;  // names of the server, besides `host`, addresses and localhost
  bool log_prompts = false;

  // The part of the URL behind http://.
  std::string authority(int bound_port) const;
};

class Routes;

// The service over HTTP.
class Http {
 public:
  Http(Service& service, const HttpOptions& options, Terminal& terminal);
  ~Http();

  // Returns the port. Throws Error(ExitCode::usage) when it cannot listen on the address.
  int bind();
  // Answers until stop() is called from another thread; then waits a few seconds for clients to take their
  // answers.
  void run() { server_.run(); }
  void stop() { server_.stop(); }

 private:
  std::unique_ptr<Routes> routes_;
  HttpServer server_;
};

}  // namespace lamplighter::cli
