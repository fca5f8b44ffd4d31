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

// The variables in which a launcher gives a process's index, the number of processes and its index on the
// machine.
struct Launcher {
  const char *name, *index, *count, *local;
  int first = 0;                // the least index
  bool numbers_single = false;  // a process that stands alone has the least index, too
};
// The first one that is found counts: those in front start processes inside of those behind.
constexpr std::array kLaunchers{
    Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    Launcher{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    Launcher{"Horovod", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"},
    Launcher{"JSM", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"},
    Launcher{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"},
    Launcher{"PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID"},
    Launcher{"MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    Launcher{"Cray's PMI", "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK"},
    Launcher{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    Launcher{"ALPS", "ALPS_APP_PE", nullptr, nullptr},
    Launcher{"PMIx", "PMIX_RANK", nullptr, nullptr},
    Launcher{"blaunch", "LSF_PM_TASKID", nullptr, nullptr, 1},
    Launcher{"HTCondor", "_CONDOR_PROCNO", "_CONDOR_NPROCS", nullptr},
    Launcher{"AWS Batch", "AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES", nullptr},
    Launcher{"Kubernetes", "JOB_COMPLETION_INDEX", nullptr, nullptr},
    Launcher{"OAR", "OAR_ARRAY_INDEX", nullptr, nullptr, 1, true},
};

// What schedulers say about the elements of a job array.
struct Array {
  const char *name, *index;
  const char *first, *last, *step,
      *count;             // null: it does not say; the first index is then 0, if any is known
  bool may_join = false;  // a launcher may number the processes of all elements together
};
constexpr std::array kArrays{
    Array{"a Slurm array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX",
          "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT"},
    Array{"an SGE array", "SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE", nullptr},
    Array{"an LSF array", "LSB_JOBINDEX", nullptr, "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP", nullptr},
    Array{"a PBS array", "PBS_ARRAY_INDEX", nullptr, nullptr, nullptr, nullptr},
    Array{"a Torque array", "PBS_ARRAYID", nullptr, nullptr, nullptr, nullptr},
    Array{"an AWS Batch array", "AWS_BATCH_JOB_ARRAY_INDEX", nullptr, nullptr, nullptr,
          "AWS_BATCH_JOB_ARRAY_SIZE"},
    Array{"Google Batch", "BATCH_TASK_INDEX", nullptr, nullptr, nullptr, "BATCH_TASK_COUNT", true},
    Array{"Cloud Run", "CLOUD_RUN_TASK_INDEX", nullptr, nullptr, nullptr, "CLOUD_RUN_TASK_COUNT"},
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

// Reads variables; null and empty names have none.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  const char* text(const char* name) const { return name == nullptr ? nullptr : environment_(name); }
  bool has(const char* name) const { return text(name) != nullptr; }
  std::optional<int> read(const char* name) const {
    const char* value = text(name);
    return value == nullptr ? std::nullopt : std::optional(number(name, value));
  }
  std::string say(const char* name) const { return std::string(name) + " = " + text(name); }

 private:
  const Environment& environment_;
};

// Slurm's variables of a step outlive it, and a batch script or an interactive shell counts as a step of one
// process: their ids are the largest ones.
bool is_slurm_step(const Variables& variables) {
  constexpr std::string_view kLeastSpecial = "4294967280";
  const char* id = variables.text("SLURM_STEP_ID");
  if (id == nullptr) return false;
  const std::string_view text = id;
  return text.size() < kLeastSpecial.size() || (text.size() == kLeastSpecial.size() && text < kLeastSpecial);
}

// The index on the machine: the launcher's own, or of the one that it starts processes with.
int local_index(const Launcher& launcher, const Variables& variables) {
  if (const auto own = variables.read(launcher.local)) return *own;
  for (const Launcher& other : kLaunchers) {
    if (const auto local = variables.read(other.local)) return *local;
  }
  return 0;
}

std::optional<Shard> by_launcher(const Launcher& launcher, int count, bool in_array,
                                 const Variables& variables) {
  if (!variables.has(launcher.index)) return std::nullopt;
  const bool is_slurm = launcher.name == std::string_view("Slurm");
  if (is_slurm && !is_slurm_step(variables)) return std::nullopt;
  const char* all = is_slurm && !variables.has(launcher.count) ? "SLURM_NTASKS" : launcher.count;
  Shard shard;
  shard.index = *variables.read(launcher.index) - launcher.first;
  shard.local = local_index(launcher, variables);
  const std::optional<int> given = variables.read(all);
  if (launcher.numbers_single && shard.index == 0 && count == 0) return std::nullopt;
  if (!given && (count == 0 || in_array)) {
    throw Error(ExitCode::usage,
                std::string(launcher.name) + " numbers its processes (" + launcher.index +
                    ") but does not give their number; use " +
                    (in_array ? "--shard I/N, counting the elements of the array, too" : "--shards N"));
  }
  if (given && !in_array && count != 0 && count != *given)
    reject("shards", std::to_string(count), variables.say(all));
  shard.count = given.value_or(count);
  shard.source = launcher.name;
  return shard;
}

// What to set where an array does not say which elements it has.
[[noreturn]] void refuse_array(const Array& array, const Variables& variables, const std::string& why) {
  throw Error(ExitCode::usage, std::string(array.name) + " (" + variables.say(array.index) + ") " + why +
                                   "; use --shard I/N, for example --shard $((" + array.index +
                                   " - FIRST))/N");
}

// LSF gives the last index alone. N elements up to index N begin at 1.
void check_lsf(const Array& array, int count, const Variables& variables) {
  const std::optional<int> last = variables.read(array.last);
  if (count != 0 && last == count && variables.read(array.step).value_or(1) == 1) return;
  refuse_array(array, variables,
               "does not say its first index; use --shards N for an array of 1-N" +
                   (last ? ", here " + variables.say(array.last) : std::string()));
}

// The index of this element among the elements of a job array, and their number.
std::optional<Shard> by_array(const Array& array, int count, const Variables& variables) {
  const char* index = variables.text(array.index);
  const bool is_lsf = array.name == std::string_view("an LSF array");
  // Jobs that are no arrays have these values.
  if (index == nullptr || index == std::string_view("undefined") ||
      (is_lsf && index == std::string_view("0")))
    return std::nullopt;
  Shard shard;
  shard.source = array.name;
  shard.index = *variables.read(array.index);
  if (is_lsf) check_lsf(array, count, variables);
  if (array.last == nullptr && array.count == nullptr)
    refuse_array(array, variables, "says neither its first index nor how many elements there are");
  const int first = is_lsf ? 1 : variables.read(array.first).value_or(0);
  const std::optional<int> last = variables.read(array.last), all = variables.read(array.count);
  const int step = last ? variables.read(array.step).value_or(1) : 1;
  if (!last && !all) refuse_array(array, variables, "does not say how many elements there are");
  if (step < 1) reject(array.step, std::to_string(step), "1 or more");
  shard.count = last ? (*last - first) / step + 1 : *all;
  const bool is_regular = (!all || *all == shard.count) && (shard.index - first) % step == 0;
  if (!is_regular) {
    refuse_array(array, variables,
                 "has indices with holes, " + std::to_string(all.value_or(shard.count)) + " of " +
                     std::to_string(first) + "-" + std::to_string(last.value_or(0)) + ":" +
                     std::to_string(step));
  }
  shard.index = (shard.index - first) / step;
  return shard;
}

// Every element of an array, and every process of an outer launcher, starts the same number of processes.
Shard join(const Shard& element, const Shard& process) {
  constexpr int kMost = kMostShards;
  if (process.count > 0 && element.count > kMost / process.count)
    reject(element.source + " and " + process.source + ": processes",
           std::to_string(element.count) + " x " + std::to_string(process.count),
           "at most " + std::to_string(kMost));
  Shard shard = process;
  shard.index = element.index * process.count + process.index;
  shard.count = element.count * process.count;
  shard.source = process.source + " in " + element.source;
  return shard;
}

void check_index(const Shard& shard) {
  if (shard.index >= 0 && shard.index < shard.count) return;
  reject(shard.source + ": shard", std::to_string(shard.index) + "/" + std::to_string(shard.count),
         "an index less than the number of shards");
}

// torchrun that runs alone in each process of another launcher knows nothing of the other ones.
bool is_alone(const Variables& variables) {
  return variables.has(kLaunchers.front().index) && variables.read("GROUP_WORLD_SIZE") == 1;
}

// pbsdsh numbers the slots or machines that its processes run on, but not the processes.
void refuse_pbsdsh(const Variables& variables) {
  constexpr const char* kTask = "PBS_TASKNUM";  // 1: the script of the job
  if (variables.read(kTask).value_or(1) == 1) return;
  const std::string slot = variables.has("PBS_VNODENUM") ? "PBS_VNODENUM" : "PBS_NODENUM";
  throw Error(ExitCode::usage, "pbsdsh (" + variables.say(kTask) +
                                   ") does not say which of its processes this is; use --shard I/N, for "
                                   "example --shard $" +
                                   slot + "/N where every slot runs one process");
}

// The process among those that launchers started.
std::optional<Shard> by_launchers(int count, bool in_array, const Variables& variables) {
  std::optional<Shard> inner;
  if (is_alone(variables)) {
    inner = by_launcher(kLaunchers.front(), 0, in_array, variables);
    check_index(*inner);
    count /= inner->count;
  }
  for (const Launcher& launcher : kLaunchers) {
    if (inner && &launcher == &kLaunchers.front()) continue;
    const std::optional<Shard> process = by_launcher(launcher, count, in_array, variables);
    if (!process) continue;
    check_index(*process);
    return inner ? join(*process, *inner) : process;
  }
  refuse_pbsdsh(variables);
  return inner;
}

// The shard of the launchers' variables; nothing without a launcher.
std::optional<Shard> by_environment(int count, const Variables& variables) {
  std::optional<Shard> element;
  const Array* array = nullptr;
  for (std::size_t i = 0; i < kArrays.size() && !element; ++i) {
    array = &kArrays.at(i);
    element = by_array(*array, count, variables);
  }
  if (element) check_index(*element);
  const std::optional<Shard> process = by_launchers(count, element.has_value(), variables);
  if (element && process && element->count > 1 && array->may_join) {
    throw Error(ExitCode::usage,
                element->source + " (" + variables.say(array->index) + ") and " + process->source +
                    " both number processes, and the latter may number the processes of one task or of "
                    "all; use --shard I/N, counting all processes");
  }
  if (element && process) return join(*element, *process);
  return element ? element : process;
}

}  // namespace

std::string Shard::name() const {
  if (count == 1) return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-of-%04d", index, count);
  return text.data();
}

Shard find_shard(const std::string& flag, int count, const Environment& environment) {
  const Variables variables(environment);
  if (!flag.empty()) {
    const Shard shard = by_flag(flag);
    check_index(shard);
    if (count != 0 && count != shard.count)
      reject("shards", std::to_string(count), "the number of --shard " + flag);
    return shard;
  }
  const std::optional<Shard> shard = by_environment(count, variables);
  if (!shard) {
    if (count != 0)
      reject("shards", std::to_string(count), "--shard I/N without a launcher that numbers processes");
    return {};
  }
  if (count != 0 && count != shard->count)
    reject("shards", std::to_string(count), shard->source + ": " + std::to_string(shard->count));
  return *shard;
}

}  // namespace lamplighter
