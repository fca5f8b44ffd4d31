#include <gmock/gmock.h>

#include <map>
#include <set>

#include "batch/processes/shard.h"
#include "tests/batch/caption_sets.h"

// Environments of processes, as launchers and schedulers set them. The shards of a run are complete and
// disjoint, or every process is refused.
namespace lamplighter {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Shard find(const Variables& variables, int count, const std::string& flag = "") {
  return find_shard(flag, count, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

struct LaunchedRun {
  std::string name;
  std::vector<Variables> processes;
  int shards = 0;            // of --shards
  std::string refused = "";  // words of the message; empty: the run is complete
};

Variables operator+(Variables left, const Variables& right) {
  left.insert(right.begin(), right.end());
  return left;
}

std::vector<Variables> cross(const std::vector<Variables>& outer, const std::vector<Variables>& inner) {
  std::vector<Variables> all;
  for (const Variables& left : outer) {
    for (const Variables& right : inner) all.push_back(left + right);
  }
  return all;
}

std::vector<Variables> slurm_array(const std::vector<int>& ids, int step) {
  std::vector<Variables> tasks;
  for (const int id : ids) {
    tasks.push_back({{"SLURM_JOB_ID", "77"},
                     {"SLURM_PROCID", "0"},
                     {"SLURM_NTASKS", "2"},
                     {"SLURM_ARRAY_TASK_ID", std::to_string(id)},
                     {"SLURM_ARRAY_TASK_COUNT", std::to_string(ids.size())},
                     {"SLURM_ARRAY_TASK_MIN", std::to_string(ids.front())},
                     {"SLURM_ARRAY_TASK_MAX", std::to_string(ids.back())},
                     {"SLURM_ARRAY_TASK_STEP", std::to_string(step)}});
  }
  return tasks;
}

// One map per process; "#" in values is the process's number from `first`.
std::vector<Variables> numbered(int processes, int first, const Variables& pattern) {
  std::vector<Variables> all;
  for (int process = 0; process < processes; ++process) {
    Variables variables = pattern;
    for (auto& [name, value] : variables) {
      if (value == "#") value = std::to_string(first + process);
    }
    all.push_back(variables);
  }
  return all;
}

std::vector<Variables> srun(int tasks) {
  return numbered(tasks, 0,
                  {{"SLURM_STEP_ID", "0"},
                   {"SLURM_PROCID", "#"},
                   {"SLURM_LOCALID", "#"},
                   {"SLURM_NTASKS", std::to_string(tasks)},
                   {"SLURM_STEP_NUM_TASKS", std::to_string(tasks)}});
}

// The variables of a step replace the ones of its batch script.
std::vector<Variables> srun_in(const std::vector<Variables>& elements, int tasks) {
  return cross(srun(tasks), elements);
}

std::vector<Variables> hydra(int processes) {
  return numbered(processes, 0,
                  {{"PMI_RANK", "#"},
                   {"PMI_SIZE", std::to_string(processes)},
                   {"PMI_FD", "9"},
                   {"MPI_LOCALRANKID", "#"},
                   {"MPI_LOCALNRANKS", std::to_string(processes)}});
}

// torchrun --standalone and its like: one agent that knows its own processes.
std::vector<Variables> torchrun_alone(int processes) {
  return numbered(processes, 0,
                  {{"RANK", "#"},
                   {"LOCAL_RANK", "#"},
                   {"WORLD_SIZE", std::to_string(processes)},
                   {"GROUP_RANK", "0"},
                   {"GROUP_WORLD_SIZE", "1"}});
}

std::vector<Variables> sge(int first, int last, int step) {
  std::vector<Variables> tasks;
  for (int id = first; id <= last; id += step) {
    tasks.push_back({{"SGE_TASK_ID", std::to_string(id)},
                     {"SGE_TASK_FIRST", std::to_string(first)},
                     {"SGE_TASK_LAST", std::to_string(last)},
                     {"SGE_TASK_STEPSIZE", std::to_string(step)}});
  }
  return tasks;
}

std::vector<Variables> lsf(int first, int last, int step) {
  std::vector<Variables> elements;
  for (int id = first; id <= last; id += step) {
    elements.push_back({{"LSB_JOBINDEX", std::to_string(id)},
                        {"LSB_JOBINDEX_END", std::to_string(last)},
                        {"LSB_JOBINDEX_STEP", std::to_string(step)}});
  }
  return elements;
}

const std::vector<LaunchedRun> kRuns = {
    {"SlurmArray", slurm_array({0, 1, 2, 3}, 1)},
    {"SlurmArrayFromTen", slurm_array({10, 11, 12}, 1)},
    {"SlurmArrayWithStep", slurm_array({0, 2, 4, 6}, 2)},
    {"SlurmArrayWithStepAndRest", slurm_array({1, 4, 7}, 3)},
    {"SlurmArrayWithHoles", slurm_array({1, 3, 7}, 1), 0, "--shard I/N"},
    {"SlurmArrayWithHolesThatLookRegular", slurm_array({0, 1, 5, 6}, 1), 0, "holes"},
    {"SlurmArrayOfOne", slurm_array({5}, 1)},
    {"SlurmStep", srun(5)},
    {"SlurmStepInAnArray", srun_in(slurm_array({0, 1, 2}, 1), 2)},
    {"SlurmStepInAnArrayWithStep", srun_in(slurm_array({0, 2, 4, 6}, 2), 2)},
    {"SlurmStepWithPmi2", cross(srun(3), {{{"PMI_SIZE", "3"}}})},
    {"SlurmStepWithPmix", cross(srun(1), {{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "slurm.pmix.77.0"}}})},
    {"SlurmBatchScript", {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "4294967291"}}}},
    {"SlurmInteractiveShell",
     {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "4294967290"}}}},
    {"OpenMpi", numbered(4, 0,
                         {{"OMPI_COMM_WORLD_RANK", "#"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "#"},
                          {"PMIX_RANK", "#"}})},
    {"OpenMpiInASlurmArray",
     cross(slurm_array({1, 2}, 1),
           numbered(3, 0, {{"OMPI_COMM_WORLD_RANK", "#"}, {"OMPI_COMM_WORLD_SIZE", "3"}}))},
    {"Hydra", hydra(4)},
    {"HydraInASlurmArray", cross(slurm_array({0, 3, 6}, 3), hydra(2))},
    {"HydraInAnSgeArray", cross(sge(2, 8, 2), hydra(3))},
    {"HydraInAPbsArray", cross(numbered(2, 0, {{"PBS_ARRAY_INDEX", "#"}}), hydra(2)), 4, "--shard I/N"},
    {"HydraInAnLsfArrayWithStep", cross(lsf(1, 7, 2), hydra(2)), 0, "--shard I/N"},
    {"PrrteInASlurmStep",
     cross(numbered(3, 0, {{"OMPI_COMM_WORLD_RANK", "#"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"PMIX_RANK", "#"}}),
           srun(1))},
    {"Pals",
     numbered(3, 0,
              {{"PALS_RANKID", "#"}, {"PALS_LOCAL_RANKID", "#"}, {"PMI_RANK", "#"}, {"PMI_SIZE", "3"}})},
    {"PalsWithoutPmi", numbered(3, 0, {{"PALS_RANKID", "#"}}), 0, "--shards N"},
    {"PalsWithShards", numbered(3, 0, {{"PALS_RANKID", "#"}}), 3},
    {"PalsInAPbsArray",
     cross(numbered(2, 1, {{"PBS_ARRAY_INDEX", "#"}}),
           numbered(2, 0, {{"PALS_RANKID", "#"}, {"PMI_SIZE", "2"}})),
     0, "--shard I/N"},
    {"Flux", numbered(4, 0, {{"FLUX_TASK_RANK", "#"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_TASK_LOCAL_ID", "#"}})},
    {"FluxInASlurmStep",
     cross(numbered(2, 0,
                    {{"FLUX_TASK_RANK", "#"}, {"FLUX_JOB_SIZE", "2"}, {"PMI_RANK", "#"}, {"PMI_SIZE", "2"}}),
           srun(1))},
    {"Jsm", numbered(2, 0, {{"JSM_NAMESPACE_RANK", "#"}, {"JSM_NAMESPACE_SIZE", "2"}, {"PMIX_RANK", "#"}})},
    {"JsmInAnLsfArray",
     cross(lsf(1, 3, 1), numbered(2, 0, {{"JSM_NAMESPACE_RANK", "#"}, {"JSM_NAMESPACE_SIZE", "2"}})), 0,
     "--shard I/N"},
    {"Horovod", numbered(2, 0, {{"HOROVOD_RANK", "#"}, {"HOROVOD_SIZE", "2"}})},
    {"Alps", numbered(2, 0, {{"ALPS_APP_PE", "#"}}), 0, "--shards N"},
    {"Mvapich",
     numbered(
         3, 0,
         {{"MV2_COMM_WORLD_RANK", "#"}, {"MV2_COMM_WORLD_SIZE", "3"}, {"MV2_COMM_WORLD_LOCAL_RANK", "#"}})},
    {"Torchrun", numbered(2, 0, {{"RANK", "#"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "#"}})},
    {"TorchrunInASlurmArray",
     cross(slurm_array({0, 1}, 1), numbered(2, 0, {{"RANK", "#"}, {"WORLD_SIZE", "2"}}))},
    {"TorchrunAcrossSlurmTasks",
     cross(numbered(4, 0, {{"RANK", "#"}, {"WORLD_SIZE", "4"}, {"GROUP_WORLD_SIZE", "2"}}), {srun(2)[1]})},
    {"TorchrunAloneInSlurmTasks", cross(srun(3), torchrun_alone(2))},
    {"TorchrunAloneInSlurmTasksWithShards", cross(srun(3), torchrun_alone(2)), 6},
    {"TorchrunAloneInSlurmTasksOfAnArray", cross(srun_in(slurm_array({1, 3}, 2), 2), torchrun_alone(2))},
    {"TorchrunAloneInABatchScript", cross(slurm_array({5}, 1), torchrun_alone(2))},
    {"TorchrunAloneInOpenMpi",
     cross(numbered(2, 0, {{"OMPI_COMM_WORLD_RANK", "#"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
           torchrun_alone(3))},
    {"TorchrunAloneInKubernetes", cross(numbered(3, 0, {{"JOB_COMPLETION_INDEX", "#"}}), torchrun_alone(2)),
     0, "--shards N"},
    {"TorchrunAloneInKubernetesWithShards",
     cross(numbered(3, 0, {{"JOB_COMPLETION_INDEX", "#"}}), torchrun_alone(2)), 6},
    {"TorchrunAloneInKubernetesWithOddShards",
     cross(numbered(3, 0, {{"JOB_COMPLETION_INDEX", "#"}}), torchrun_alone(2)), 7,
     "torchrun in Kubernetes: 6"},
    {"TorchrunAlone", torchrun_alone(4)},
    {"Pbsdsh", numbered(3, 2, {{"PBS_TASKNUM", "#"}, {"PBS_VNODENUM", "#"}, {"PBS_NODENUM", "0"}}), 0,
     "--shard $PBS_VNODENUM/N"},
    {"PbsdshOfOpenPbs", numbered(3, 2, {{"PBS_TASKNUM", "#"}, {"PBS_NODENUM", "#"}}), 3,
     "--shard $PBS_NODENUM/N"},
    {"TorchrunAloneByPbsdsh", cross(numbered(2, 2, {{"PBS_TASKNUM", "#"}}), torchrun_alone(2)), 0,
     "pbsdsh (PBS_TASKNUM = "},
    {"HydraByPbs", cross(numbered(1, 7, {{"PBS_TASKNUM", "#"}, {"PBS_NODENUM", "1"}}), hydra(3))},
    {"PbsScript", {{{"PBS_TASKNUM", "1"}, {"PBS_NODENUM", "0"}, {"PBS_VNODENUM", "0"}, {"PBS_NP", "8"}}}},
    {"Pmix", numbered(2, 0, {{"PMIX_RANK", "#"}, {"PMIX_NAMESPACE", "prterun-1"}}), 0, "--shards N"},
    {"PmixWithShards", numbered(2, 0, {{"PMIX_RANK", "#"}}), 2},
    {"PmixInAnArray", cross(slurm_array({0, 1}, 1), numbered(2, 0, {{"PMIX_RANK", "#"}})), 4, "--shard I/N"},
    {"Kubernetes", numbered(3, 0, {{"JOB_COMPLETION_INDEX", "#"}}), 3},
    {"KubernetesWithoutShards", numbered(3, 0, {{"JOB_COMPLETION_INDEX", "#"}}), 0, "--shards N"},
    {"Sge", sge(1, 10, 1)},
    {"SgeWithStep", sge(1, 10, 4)},
    {"SgeWithoutArray", {{{"SGE_TASK_ID", "undefined"}, {"SGE_TASK_LAST", "undefined"}}}},
    {"Lsf", lsf(1, 4, 1), 4},
    {"LsfWithoutShards", lsf(1, 4, 1), 0, "--shards N for an array of 1-N, here LSB_JOBINDEX_END = 4"},
    {"LsfFromThree", lsf(3, 6, 1), 4, "--shard I/N"},
    {"LsfWithStep", lsf(1, 7, 2), 4, "--shard I/N"},
    {"LsfWithoutArray", {{{"LSB_JOBINDEX", "0"}}}},
    {"Pbs", numbered(3, 0, {{"PBS_ARRAY_INDEX", "#"}}), 3, "$((PBS_ARRAY_INDEX - FIRST))/N"},
    {"PbsFromOne", numbered(3, 1, {{"PBS_ARRAY_INDEX", "#"}}), 3, "--shard I/N"},
    {"Torque", numbered(3, 0, {{"PBS_ARRAYID", "#"}}), 0, "--shard I/N"},
    {"AwsBatchArray",
     numbered(3, 0, {{"AWS_BATCH_JOB_ARRAY_INDEX", "#"}, {"AWS_BATCH_JOB_ARRAY_SIZE", "3"}})},
    {"AwsBatchArrayWithoutSize", numbered(3, 0, {{"AWS_BATCH_JOB_ARRAY_INDEX", "#"}}), 0, "--shard I/N"},
    {"TorchrunInAnAwsBatchArray",
     cross(numbered(2, 0, {{"AWS_BATCH_JOB_ARRAY_INDEX", "#"}, {"AWS_BATCH_JOB_ARRAY_SIZE", "2"}}),
           numbered(3, 0, {{"RANK", "#"}, {"WORLD_SIZE", "3"}}))},
    {"AwsBatchNodes", numbered(3, 0,
                               {{"AWS_BATCH_JOB_NODE_INDEX", "#"},
                                {"AWS_BATCH_JOB_NUM_NODES", "3"},
                                {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "0"}})},
    {"MpiOverAwsBatchNodes",
     cross(numbered(1, 0, {{"AWS_BATCH_JOB_NODE_INDEX", "#"}, {"AWS_BATCH_JOB_NUM_NODES", "2"}}),
           numbered(4, 0, {{"OMPI_COMM_WORLD_RANK", "#"}, {"OMPI_COMM_WORLD_SIZE", "4"}}))},
    {"AwsBatchJob", {{{"AWS_BATCH_JOB_ID", "6c7"}, {"AWS_BATCH_JOB_ATTEMPT", "1"}}}},
    {"GoogleBatch", numbered(4, 0, {{"BATCH_TASK_INDEX", "#"}, {"BATCH_TASK_COUNT", "4"}})},
    {"GoogleBatchTask", {{{"BATCH_TASK_INDEX", "0"}, {"BATCH_TASK_COUNT", "1"}}}},
    {"GoogleBatchWithoutCount", numbered(2, 0, {{"BATCH_TASK_INDEX", "#"}}), 0, "--shard I/N"},
    {"TorchrunOverGoogleBatch",
     numbered(2, 0,
              {{"BATCH_TASK_INDEX", "#"}, {"BATCH_TASK_COUNT", "2"}, {"RANK", "#"}, {"WORLD_SIZE", "2"}}),
     0, "Google Batch (BATCH_TASK_INDEX = "},
    {"TorchrunInAGoogleBatchTask", cross({{{"BATCH_TASK_INDEX", "0"}, {"BATCH_TASK_COUNT", "1"}}},
                                         numbered(2, 0, {{"RANK", "#"}, {"WORLD_SIZE", "2"}}))},
    {"CloudRun", numbered(3, 0, {{"CLOUD_RUN_TASK_INDEX", "#"}, {"CLOUD_RUN_TASK_COUNT", "3"}})},
    {"Blaunch", numbered(3, 1, {{"LSF_PM_TASKID", "#"}, {"LSB_DJOB_NUMPROC", "3"}, {"LSB_JOBINDEX", "0"}}),
     3},
    {"BlaunchWithoutShards", numbered(3, 1, {{"LSF_PM_TASKID", "#"}}), 0,
     "blaunch numbers its processes (LSF_PM_TASKID) but does not give their number; use --shards N"},
    {"BlaunchInAnLsfArray", cross(lsf(1, 2, 1), numbered(2, 1, {{"LSF_PM_TASKID", "#"}})), 2, "--shard I/N"},
    {"TorchrunByBlaunch", cross(numbered(1, 1, {{"LSF_PM_TASKID", "#"}}),
                                numbered(2, 0, {{"RANK", "#"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "#"}}))},
    {"HtCondor", numbered(3, 0, {{"_CONDOR_PROCNO", "#"}, {"_CONDOR_NPROCS", "3"}})},
    {"OarArray", numbered(3, 1, {{"OAR_ARRAY_INDEX", "#"}, {"OAR_ARRAY_ID", "77"}}), 3},
    {"OarArrayWithoutShards", numbered(2, 2, {{"OAR_ARRAY_INDEX", "#"}}), 0, "--shards N"},
    {"OarJob", {{{"OAR_ARRAY_INDEX", "1"}, {"OAR_ARRAY_ID", "77"}, {"OAR_JOB_ID", "77"}}}},
    {"Nothing", {{}}},
};

class Launchers : public testing::TestWithParam<LaunchedRun> {};

TEST_P(Launchers, ShardsAreCompleteAndDisjointOrRefused) {
  const LaunchedRun& run = GetParam();
  std::set<int> indices;
  for (const Variables& process : run.processes) {
    if (!run.refused.empty()) {
      EXPECT_THAT(message_of([&] { find(process, run.shards); }, ExitCode::usage), HasSubstr(run.refused));
      continue;
    }
    const Shard shard = find(process, run.shards);
    EXPECT_EQ(shard.count, static_cast<int>(run.processes.size()));
    EXPECT_TRUE(indices.insert(shard.index).second) << shard.index << " twice";
  }
  if (!run.refused.empty()) return;
  EXPECT_EQ(*indices.begin(), 0);
  EXPECT_EQ(indices.size(), run.processes.size());
}

// Processes of one machine take devices by their index on it, whichever launcher says it.
TEST(LocalIndex, ComesFromAnyLauncher) {
  EXPECT_EQ(find(srun(4)[3], 0).local, 3);
  EXPECT_EQ(find(cross({{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}}, {srun(2)[1]})[0], 0).local, 1);
  EXPECT_EQ(find({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"PMI_LOCAL_RANK", "2"}}, 0).local, 2);
  EXPECT_EQ(find({{"PMIX_RANK", "5"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}}, 8).local, 3);
  EXPECT_EQ(find({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}, 0).local, 0);
}

// What the messages say to set is accepted.
TEST_P(Launchers, TheFlagDecides) {
  const Shard shard = find(GetParam().processes.back(), 0, "1/3");
  EXPECT_EQ(shard.index, 1);
  EXPECT_EQ(shard.count, 3);
}

INSTANTIATE_TEST_SUITE_P(All, Launchers, testing::ValuesIn(kRuns),
                         [](const testing::TestParamInfo<LaunchedRun>& launched) {
                           return launched.param.name;
                         });

}  // namespace
}  // namespace lamplighter
