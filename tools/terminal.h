#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/format.h"
#include "base/line_writer.h"
#include "lamplighter/options.h"
#include "tools/flags.h"

namespace lamplighter::cli {

// Messages for people on standard error, and on a terminal a progress bar below them.
class Terminal {
 public:
  explicit Terminal(const LogFlags& flags);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // From now on messages wait for nobody who reads them, and may come from several threads.
  void write_in_background();

  void log(const std::string& line);  // unless --quiet
  LogCallback log_callback() {
    return [this](const std::string& line) { log(line); };
  }
  void detail(const std::string& line);  // with --verbose
  void result(const std::string& line);  // standard output
  // Text on standard output at once. A terminal gets no control characters but tabs and line ends.
  void stream(const std::string& text);
  void complain(const std::string& line);  // an error that does not end the program

  // Shows `done` of `total` units, the rate since the first call, and `more`.
  void progress(double done, double total, const char* unit = "tokens", const std::string& more = "");
  void progress(std::int64_t done, std::int64_t total, const char* unit = "tokens") {
    progress(static_cast<double>(done), static_cast<double>(total), unit);
  }
  bool has_bar() const { return bar_wanted_; }

 private:
  using Clock = std::chrono::steady_clock;
  void clear_bar();
  void print(const std::string& line);

  LogFlags flags_;
  bool bar_wanted_;
  bool bar_shown_ = false;
  bool started_ = false;
  double first_done_ = 0;
  Clock::time_point start_, refreshed_;
  std::unique_ptr<LineWriter> writer_;  // null: lines are written at once
};

// Prints a note of the library on standard error.
void print_note(const std::string& text);

// Prints the first line of an error on standard error.
void print_error(const std::string& message);

}  // namespace lamplighter::cli
