#pragma once

namespace lamplighter::cli {

// Makes SIGINT and SIGTERM end the program with 130 and 143, and a file size limit (SIGXFSZ) a write error.
// Signals that the parent ignores stay ignored: shells start background jobs so, nohup does it with SIGHUP.
void install_signal_handlers();

// The signal that asked the program to stop, or 0.
int stop_signal();

// While an object of this class lives, the first signal only sets stop_signal(), so that work can end
// cleanly. A second one ends the program at once.
class OrderlyStop {
 public:
  OrderlyStop();
  ~OrderlyStop();
  OrderlyStop(const OrderlyStop&) = delete;
  OrderlyStop& operator=(const OrderlyStop&) = delete;
};

}  // namespace lamplighter::cli
