#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "serve/service.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any that is free
  std::size_t body_bytes = std::size_t{1} << 20;
  std::string api_key;  // empty: none is asked for
  std::string cors;     // origin of pages that may ask; empty: none
  bool log_prompts = false;

  // The part of an address behind http://.
  std::string authority(int bound_port) const;
};

// Whether this build has the library that serve needs.
bool has_http();

class Routes;

// The service over HTTP.
class Http {
 public:
  Http(Service& service, const HttpOptions& options, Terminal& terminal);
  ~Http();

  // Throws Error(ExitCode::usage) when the address cannot be had. Returns the port.
  int bind();
  void run();  // answers until stop() is called from another thread and all answers are out
  void stop();

 private:
  std::unique_ptr<Routes> routes_;
};

}  // namespace lamplighter::cli
