#include "signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace lamplighter::cli {
namespace {

std::atomic<int> stopped_by{0};
std::atomic<bool> orderly{false};

void on_signal(int number) {
  if (orderly && stopped_by == 0) {
    stopped_by = number;
    return;
  }
  constexpr std::string_view words = "\nlamplighter: stopped\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
  ::_exit(128 + number);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGXFSZ, SIG_IGN);
}

int stop_signal() {
  return stopped_by;
}

OrderlyStop::OrderlyStop() {
  orderly = true;
}
OrderlyStop::~OrderlyStop() {
  orderly = false;
}

}  // namespace lamplighter::cli
