#pragma once

#include <string>

namespace lamplighter::cli {

// The other end of a connection of this process, seen from outside of the library that holds it.
class Client {
 public:
  // By its address as text and its port, and the port here. Where there is no such connection, it stays.
  Client(const std::string& address, int port, int local_port);

  // Whether it has closed the connection.
  bool is_gone() const;

 private:
  int socket_ = -1;  // not owned
};

}  // namespace lamplighter::cli
