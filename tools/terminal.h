#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/format.h"
#include "flags.h"
#include "lamplighter/options.h"

namespace lamplighter::cli {

// Words for people, on standard error: lines, and on a terminal one bar that lines push aside.
class Terminal {
 public:
  explicit Terminal(const TalkFlags& flags);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void say(const std::string& line);  // unless --quiet
  NoteCallback sayer() {
    return [this](const std::string& line) { say(line); };
  }
  void detail(const std::string& line);    // with --verbose
  void result(const std::string& line);    // standard output
  void complain(const std::string& line);  // an error that does not end the program

  // Shows how far `total` units are, and `more`; the clock starts with the first call.
  void progress(double done, double total, const char* unit = "tokens", const std::string& more = "");
  void progress(std::int64_t done, std::int64_t total, const char* unit = "tokens") {
    progress(static_cast<double>(done), static_cast<double>(total), unit);
  }
  bool has_bar() const { return bar_wanted_; }

 private:
  using Clock = std::chrono::steady_clock;
  void clear_bar();

  TalkFlags flags_;
  bool bar_wanted_;
  bool bar_shown_ = false;
  bool started_ = false;
  double first_done_ = 0;
  Clock::time_point start_, drawn_;
};

// What the library tells by the way, on standard error.
void print_note(const std::string& text);

// The first line of an error, on standard error.
void print_error(const std::string& message);

}  // namespace lamplighter::cli
