#include "tools/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "base/message.h"
#include "base/utf8.h"
#include "lamplighter/error.h"

namespace lamplighter::cli {
namespace {

constexpr int kCells = 24;
constexpr std::chrono::milliseconds kRefresh{100};

bool can_show_bar() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

// In one call: lines of several processes that share the stream stay whole.
void write_line(const std::string& line) {
  std::cerr << line + "\n" << std::flush;
}

// Values and damaged files put arbitrary bytes into messages; terminals and logs need one line of UTF-8.
std::string error_line(const std::string& message) {
  return "lamplighter: error: " + one_line(message);
}

}  // namespace

void print_note(const std::string& text) {
  write_line("lamplighter: note: " + one_line(text));
}

void print_error(const std::string& message) {
  write_line(error_line(message));
}

Terminal::Terminal(const LogFlags& flags) : flags_(flags), bar_wanted_(!flags.quiet && can_show_bar()) {}

Terminal::~Terminal() {
  clear_bar();
}

void Terminal::clear_bar() {
  if (bar_shown_) std::cerr << "\r\x1b[K" << std::flush;
  bar_shown_ = false;
}

void Terminal::write_in_background() {
  writer_ = std::make_unique<LineWriter>(STDERR_FILENO);
}

void Terminal::print(const std::string& line) {
  if (writer_) return writer_->add(line);
  clear_bar();
  write_line(line);
}

void Terminal::log(const std::string& line) {
  if (!flags_.quiet) print(one_line(line));
}

void Terminal::complain(const std::string& line) {
  print(error_line(line));
}

void Terminal::detail(const std::string& line) {
  if (flags_.verbose) log(line);
}

void Terminal::result(const std::string& line) {
  clear_bar();
  std::cout << line << std::endl;
  if (!std::cout) throw Error(ExitCode::output, "cannot write to standard output");
}

void Terminal::stream(const std::string& text) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  std::u32string codes = decode_utf8(text);
  const auto controls = [](char32_t code) {
    return (code < 0x20 && code != U'\n' && code != U'\t') || (code >= 0x7F && code < 0xA0);
  };
  if (is_terminal) codes.erase(std::remove_if(codes.begin(), codes.end(), controls), codes.end());
  std::cout << (is_terminal ? encode_utf8(codes) : text) << std::flush;
  if (!std::cout) throw Error(ExitCode::output, "cannot write to standard output");
}

void Terminal::progress(double done, double total, const char* unit, const std::string& more) {
  if (!bar_wanted_) return;
  const Clock::time_point now = Clock::now();
  if (!started_) {
    started_ = true;
    start_ = now;
    first_done_ = done;
  } else if (now - refreshed_ < kRefresh && done < total) {
    return;
  }
  refreshed_ = now;
  const int filled = static_cast<int>(done * kCells / std::max(1.0, total));
  std::string bar(static_cast<std::size_t>(filled), '#');
  bar.resize(kCells, '.');
  std::string line = "\r\x1b[K[" + bar + "] " + format_fixed(std::floor(done), 0) + "/" +
                     format_fixed(total, 0) + " " + unit;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (done > first_done_ && seconds > 0) {
    const double rate = (done - first_done_) / seconds;
    line += ", " + format_fixed(rate, rate < 10 ? 2 : 0) + " " + unit + "/s, " +
            format_fixed((total - done) / rate, 1) + " s left";
  }
  if (!more.empty()) line += ", " + more;
  std::cerr << line << std::flush;
  bar_shown_ = true;
}

}  // namespace lamplighter::cli
