#include "bench/machine/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A machine with /proc and /sys in a temporary folder.
class FakeMachine : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(root_); }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    const fs::path path = root_.string() + file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // Sets ticks of all CPUs and of this program.
  void spend(const std::string& all, const std::string& own) const {
    write("/proc/stat", "cpu  " + all + "\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
    write("/proc/self/stat", "4711 (a name) of) R 1 4711 4711 0 -1 4194304 100 0 0 0 " + own + " 0 0 20 0\n");
  }
  Environment read() const { return read_environment("", Nvml(""), root_.string()); }

  fs::path root_ = fs::path(::testing::TempDir()) / "machine";
};

TEST_F(FakeMachine, ReadsTheSystem) {
  write("/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\ncpu MHz\t\t: 1800.000\nflags\t\t:\n\n"
        "processor\t: 1\nmodel name\t: Example CPU @ 2.00GHz\ncpu MHz\t\t: 2200.000\n");
  write("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3500000\n");
  write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1234000\n");
  write("/proc/loadavg", "0.15 0.20 0.30 1/100 4711\n");
  const Environment machine = read();
  EXPECT_EQ(machine.cpu, "Example CPU @ 2.00GHz");
  EXPECT_EQ(machine.cpus, 2);
  EXPECT_DOUBLE_EQ(machine.mhz.value_or(0), 2000);
  EXPECT_DOUBLE_EQ(machine.max_mhz.value_or(0), 3500);
  EXPECT_DOUBLE_EQ(machine.load_before.value_or(-1), 0.15);
  EXPECT_FALSE(machine.others.has_value());
  EXPECT_EQ(machine.driver, "");
  EXPECT_GT(machine.threads, 0);
  EXPECT_THAT(machine.words(), HasSubstr("Example CPU @ 2.00GHz at 2000 of 3500 MHz, 2 CPUs, "));
  EXPECT_THAT(machine.words(), HasSubstr("Torch " + machine.torch));
}

// ARM's cpuinfo contains neither names nor clocks.
TEST_F(FakeMachine, AcceptsMissingFields) {
  write("/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n");
  write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1234000\n");
  const Environment machine = read();
  EXPECT_EQ(machine.cpu, "");
  EXPECT_DOUBLE_EQ(machine.mhz.value_or(0), 1234);
  EXPECT_FALSE(machine.max_mhz.has_value());
  EXPECT_FALSE(machine.load_before.has_value());
  EXPECT_FALSE(machine.is_busy());
  EXPECT_EQ(machine.warning(), "");
  EXPECT_THAT(machine.words(), HasSubstr("unknown CPU at 1234 MHz, 1 CPU, "));
}

TEST_F(FakeMachine, CountsTheTimeThatOthersTook) {
  // Fields: user nice system idle iowait irq softirq steal guest guest_nice.
  spend("1000 0 200 5000 100 0 0 50 0 0", "700 300");
  const LoadMeter load(root_.string());
  EXPECT_FALSE(load.others().has_value());  // no time has passed
  // 1000 ticks later: 550 were busy, of which 60 were stolen and 400 our own.
  spend("1400 20 270 5440 110 0 0 110 9 0", "1050 350");
  EXPECT_DOUBLE_EQ(load.others().value_or(-1), 0.15);
}

TEST_F(FakeMachine, WithoutCountersReportsNoShare) {
  EXPECT_FALSE(LoadMeter(root_.string()).others().has_value());
  spend("1000 0 200 5000 100 0 0 50 0 0", "700 300");
  const LoadMeter load(root_.string());
  write("/proc/stat", "cpu  1 2\n");
  EXPECT_FALSE(load.others().has_value());
}

TEST(BusyMachine, IsOneWhoseCpusOthersTake) {
  Environment machine;
  machine.cpus = 4;
  machine.load_before = 0.3;
  EXPECT_FALSE(machine.is_busy());
  machine.load_before = 0.5;
  EXPECT_TRUE(machine.is_busy());
  EXPECT_THAT(machine.warning(), HasSubstr("load 0.50 before the run;"));
  machine.others = 0.05;  // the earlier load has ended
  EXPECT_FALSE(machine.is_busy());
  machine.others = 0.34;
  EXPECT_TRUE(machine.is_busy());
  EXPECT_THAT(machine.warning(), HasSubstr("load 0.50 before the run, 34 % of its CPUs taken"));
}

}  // namespace
}  // namespace lamplighter
