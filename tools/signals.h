#pragma once

namespace lamplighter::cli {

// From now on SIGINT and SIGTERM end the program with 130 and 143. A file limit (SIGXFSZ) becomes a write
// error.
void install_signal_handlers();

// The signal that asked to stop, 0 when none did.
int stop_signal();

// While one of these lives, the first signal only sets stop_signal(), so that work can end in order; a second
// one ends the program at once.
class OrderlyStop {
 public:
  OrderlyStop();
  ~OrderlyStop();
  OrderlyStop(const OrderlyStop&) = delete;
  OrderlyStop& operator=(const OrderlyStop&) = delete;
};

}  // namespace lamplighter::cli
