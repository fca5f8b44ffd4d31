#include "batch/processes/shard.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/message.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr int kMostShards = 100'000;

[[noreturn]] void reject(const std::string& what, const std::string& got, const std::string& expected) {
  throw Error(ExitCode::usage, what + ": got " + quote(got) + ", expected " + expected);
}

int number(const std::string& what, std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostShards)
    reject(what, std::string(text), "0 to " + std::to_string(kMostShards));
  return value;
}

// A launcher's variables: what a process's number, their count and its number on the machine are called.
struct Launcher {
  const char *name, *index, *count, *local;
  const char* needs;  // a variable that must be set, too, where the others outlive their step; null: none
};
constexpr std::array kLaunchers{
    Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", nullptr},
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             nullptr},
    Launcher{"a Slurm array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", nullptr, nullptr},
    Launcher{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
    Launcher{"Kubernetes", "JOB_COMPLETION_INDEX", nullptr, nullptr, nullptr},
};

Shard by_flag(const std::string& flag) {
  const std::size_t slash = flag.find('/');
  if (slash == std::string::npos) reject("shard", flag, "I/N, for example 0/4");
  Shard shard;
  shard.index = number("shard", std::string_view(flag).substr(0, slash));
  shard.count = number("shard", std::string_view(flag).substr(slash + 1));
  shard.source = "--shard";
  return shard;
}

std::optional<Shard> by_launcher(const Launcher& launcher, int count, const Environment& environment) {
  const auto variable = [&](const char* name) { return name == nullptr ? nullptr : environment(name); };
  const char* index = variable(launcher.index);
  if (index == nullptr || (launcher.needs != nullptr && variable(launcher.needs) == nullptr))
    return std::nullopt;
  Shard shard;
  shard.index = number(launcher.index, index);
  // The tasks of an array may begin with any number, and must then follow one another.
  if (launcher.index == std::string_view("SLURM_ARRAY_TASK_ID")) {
    const char* least = variable("SLURM_ARRAY_TASK_MIN");
    if (least != nullptr) shard.index -= number("SLURM_ARRAY_TASK_MIN", least);
  }
  if (const char* local = variable(launcher.local)) shard.local = number(launcher.local, local);
  const char* all = variable(launcher.count);
  if (all == nullptr && count == 0) {
    throw Error(ExitCode::usage, std::string(launcher.name) + " numbers its processes (" + launcher.index +
                                     ") and does not say how many there are: give shards, their number");
  }
  shard.count = all == nullptr ? count : number(launcher.count, all);
  if (count != 0 && count != shard.count)
    reject("shards", std::to_string(count), launcher.count + (" = " + std::string(all)));
  shard.source = launcher.name;
  return shard;
}

}  // namespace

std::string Shard::name() const {
  if (count == 1) return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-of-%04d", index, count);
  return text.data();
}

Shard find_shard(const std::string& flag, int count, const Environment& environment) {
  Shard shard;
  if (!flag.empty()) {
    shard = by_flag(flag);
  } else {
    for (const Launcher& launcher : kLaunchers) {
      const std::optional<Shard> found = by_launcher(launcher, count, environment);
      if (!found) continue;
      shard = *found;
      break;
    }
  }
  if (count != 0 && shard.source.empty())
    reject("shards", std::to_string(count), "it beside a launcher that numbers processes; else --shard I/N");
  if (shard.index < 0 || shard.index >= shard.count) {
    reject(shard.source + ": shard", std::to_string(shard.index) + "/" + std::to_string(shard.count),
           "a number less than how many there are");
  }
  return shard;
}

}  // namespace lamplighter
