#include "tools/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace lamplighter::cli {
namespace {

std::atomic<int> stopped_by{0};
std::atomic<bool> orderly{false};
std::atomic<std::int64_t> stopped_at{0};

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Some programs (timeout) signal the process and its group: both signals together are one stop.
constexpr std::int64_t kSameStop = 200;  // milliseconds

void on_signal(int number) {
  int none = 0;
  if (orderly && stopped_by.compare_exchange_strong(none, number)) {
    stopped_at = milliseconds();
    return;
  }
  if (number == stopped_by && milliseconds() - stopped_at < kSameStop) return;
  constexpr std::string_view words = "\nlamplighter: stopped\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
  ::_exit(128 + number);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {
  }, inherited{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) {
    const bool is_ignored = sigaction(number, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
    if (!is_ignored) sigaction(number, &action, nullptr);
  }
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
