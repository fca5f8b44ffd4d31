#include "bench/machine/energy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

class Powercap : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& zone, const std::string& file, const std::string& text) const {
    fs::create_directories(folder_ / zone);
    std::ofstream(folder_ / zone / file) << text << "\n";
  }
  void add(const std::string& zone, const std::string& name, const std::string& energy) const {
    write(zone, "name", name);
    write(zone, "max_energy_range_uj", "1000000000");
    write(zone, "energy_uj", energy);
  }
  EnergyMeter meter() const { return EnergyMeter(nullptr, folder_.string()); }

  fs::path folder_ = fs::path(::testing::TempDir()) / "powercap";
};

TEST_F(Powercap, PackagesAndTheirMemoryAddUp) {
  add("intel-rapl:0", "package-0", "5000000");
  add("intel-rapl:0:0", "core", "4000000");  // part of the package
  add("intel-rapl:0:1", "dram", "100");
  add("intel-rapl:1", "package-1", "0");
  add("intel-rapl:2", "psys", "0");            // contains the packages
  add("intel-rapl-mmio:0", "package-0", "7");  // the same counter again
  EnergyMeter energy = meter();
  write("intel-rapl:0", "energy_uj", "7500000");
  write("intel-rapl:0:0", "energy_uj", "6000000");
  write("intel-rapl:0:1", "energy_uj", "500100");
  write("intel-rapl:1", "energy_uj", "1000000");
  write("intel-rapl:2", "energy_uj", "9000000");
  write("intel-rapl-mmio:0", "energy_uj", "2500007");
  EXPECT_DOUBLE_EQ(energy.lap().value_or(-1), 2.5 + 0.5 + 1);
  EXPECT_DOUBLE_EQ(energy.lap().value_or(-1), 0);
}

TEST_F(Powercap, ACounterThatWrapsAroundGoesOn) {
  add("intel-rapl:0", "package-0", "999000000");
  EnergyMeter energy = meter();
  write("intel-rapl:0", "energy_uj", "3000000");
  EXPECT_DOUBLE_EQ(energy.lap().value_or(-1), 4);
}

TEST_F(Powercap, WithoutCountersNothingIsReported) {
  EXPECT_FALSE(meter().lap().has_value());
  EXPECT_FALSE(EnergyMeter(nullptr, (folder_ / "none").string()).lap().has_value());
  // One counter is readable by root only, the other has an unknown range.
  write("intel-rapl:0", "name", "package-0");
  write("intel-rapl:0", "max_energy_range_uj", "1000000000");
  write("intel-rapl:1", "name", "package-1");
  write("intel-rapl:1", "energy_uj", "5");
  EXPECT_FALSE(meter().lap().has_value());
}

TEST(Nvml, AMachineWithoutTheLibraryReportsNothing) {
  const Nvml nvml("00000000:01:00.0", "libnone-of-this-name.so.1");
  EXPECT_EQ(nvml.driver(), "");
  EXPECT_FALSE(nvml.mhz().has_value());
  EXPECT_FALSE(nvml.max_mhz().has_value());
  EXPECT_FALSE(nvml.joules().has_value());
}

constexpr const char* kLibrary = LAMPLIGHTER_BINARY_DIR "/libnvml.so";

TEST(Nvml, ReadsTheDriver) {
  const Nvml nvml("00000000:01:00.0", kLibrary);
  EXPECT_EQ(nvml.driver(), "580.12");
  EXPECT_DOUBLE_EQ(nvml.mhz().value_or(0), 1200);
  EXPECT_FALSE(nvml.max_mhz().has_value());
  EnergyMeter energy(&nvml, "/nonexistent");
  EXPECT_DOUBLE_EQ(energy.lap().value_or(-1), 0.5);
  EXPECT_DOUBLE_EQ(energy.lap().value_or(-1), 0.5);
  EXPECT_EQ(Nvml("00000000:02:00.0", kLibrary).driver(), "");  // another GPU
}

}  // namespace
}  // namespace lamplighter
