#include "bench/machine/environment.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/format.h"
#include "bench/build.h"
#include "device/machine.h"
#include "lamplighter/version.h"

namespace lamplighter {
namespace {

constexpr double kBusyShare = 0.1;  // share of all CPUs

std::optional<double> number_in(const std::string& file) {
  std::ifstream stream(file);
  double number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// "processor : N" and "cpu MHz : X", once for every CPU.
void read_cpus(std::istream& text, Environment& environment) {
  double sum = 0;
  int clocks = 0;
  for (std::string line; std::getline(text, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = line.substr(std::min(line.size(), colon + 2));
    if (key == "processor") ++environment.cpus;
    if (key != "cpu MHz") continue;
    sum += std::atof(value.c_str());
    ++clocks;
  }
  if (clocks > 0) environment.mhz = sum / clocks;
}

std::string number(double value, int digits) {
  std::ostringstream text;
  text.precision(digits);
  text << std::fixed << value;
  return text.str();
}

std::string clock_words(const std::optional<double>& now, const std::optional<double>& most) {
  if (!now && !most) return "";
  return " at " + (now ? number(*now, 0) : "?") + (most ? " of " + number(*most, 0) : "") + " MHz";
}

// Formats 13000 as 13.0.
std::string cuda_version() {
  const auto& hooks = at::detail::getCUDAHooks();
  if (!hooks.hasCUDART()) return "";
  const auto version = hooks.versionCUDART();
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

bool Environment::is_busy() const {
  // The load average covers the past minute, which may be the previous run.
  return others ? *others > kBusyShare : load_before.value_or(0) > kBusyShare * std::max(1, cpus);
}

std::string Environment::words() const {
  std::string text = (cpu.empty() ? "unknown CPU" : cpu) + clock_words(mhz, max_mhz) + ", " +
                     counted(cpus, "CPU") + ", " + counted(threads, "thread");
  if (!gpu.empty()) text += ", " + gpu + clock_words(gpu_mhz, gpu_max_mhz);
  if (!driver.empty()) text += ", driver " + driver;
  if (!cuda.empty()) text += ", CUDA " + cuda;
  return text + ", Torch " + torch + ", lamplighter " + version + (commit.empty() ? "" : " (" + commit + ")");
}

std::string Environment::warning() const {
  if (!is_busy()) return "";
  std::string text = "the machine was busy: ";
  if (load_before) text += "load " + number(*load_before, 2) + " before the run";
  if (others)
    text += (load_before ? ", " : "") + number(100 * *others, 0) +
            " % of its CPUs taken by other programs during it";
  return text + "; times are longer and ratios less certain than on an idle machine";
}

Environment read_environment(const std::string& gpu, const Nvml& nvml, const std::string& root) {
  Environment environment;
  std::ifstream cpus(root + "/proc/cpuinfo");
  read_cpus(cpus, environment);
  environment.cpu = cpu_name(root);
  const std::string frequencies = root + "/sys/devices/system/cpu/cpu0/cpufreq/";  // in kHz
  if (const auto khz = number_in(frequencies + "scaling_cur_freq"); khz && !environment.mhz)
    environment.mhz = *khz / 1000;
  if (const auto khz = number_in(frequencies + "cpuinfo_max_freq")) environment.max_mhz = *khz / 1000;
  environment.gpu = gpu;
  if (!gpu.empty()) environment.cuda = cuda_version();
  environment.driver = nvml.driver();
  environment.gpu_mhz = nvml.mhz();
  environment.gpu_max_mhz = nvml.max_mhz();
  environment.version = kVersion;
  environment.commit = kCommit;
  environment.torch = TORCH_VERSION;
  environment.threads = at::get_num_threads();
  environment.load_before = number_in(root + "/proc/loadavg");
  return environment;
}

LoadMeter::LoadMeter(const std::string& root) : root_(root), begin_(read()) {}

std::optional<LoadMeter::Ticks> LoadMeter::read() const {
  // Fields: cpu user nice system idle iowait irq softirq steal. Guest time is part of user time.
  std::ifstream system(root_ + "/proc/stat");
  std::string name;
  system >> name;
  Ticks ticks;
  for (int column = 0; column < 8; ++column) {
    double value = 0;
    if (!(system >> value)) return std::nullopt;
    ticks.all += value;
    if (column != 3 && column != 4) ticks.busy += value;
  }
  // The program's name, in brackets, may contain blanks, so fields are counted after it.
  std::ifstream own(root_ + "/proc/self/stat");
  std::string line;
  std::getline(own, line);
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(bracket + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, kernel = 0;
  if (!(fields >> user >> kernel)) return std::nullopt;
  ticks.own = user + kernel;
  return ticks;
}

std::optional<double> LoadMeter::others() const {
  const std::optional<Ticks> end = read();
  if (!begin_ || !end || end->all <= begin_->all) return std::nullopt;
  const double taken = end->busy - begin_->busy - (end->own - begin_->own);
  return std::clamp(taken / (end->all - begin_->all), 0.0, 1.0);
}

}  // namespace lamplighter
