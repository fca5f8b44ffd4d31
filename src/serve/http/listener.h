#pragma once

#include <string>

#include "base/descriptor.h"

namespace lamplighter {

// A socket that listens on an address, alone: no other process listens on the same port.
struct Listener {
  Descriptor socket;
  int port = 0;
};

// port 0: any that is free. Throws Error(ExitCode::usage).
Listener listen_on(const std::string& host, int port);

}  // namespace lamplighter
