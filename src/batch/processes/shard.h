#pragma once

#include <functional>
#include <string>

namespace lamplighter {

// A process's part of a run: captions i with i % count == index.
struct Shard {
  int index = 0, count = 1;
  int local = 0;       // of the processes on this machine; picks the device
  std::string source;  // who said so: "--shard", "torchrun", ...; empty: nobody, the run is whole

  bool draws(std::size_t caption) const {
    return caption % static_cast<std::size_t>(count) == static_cast<std::size_t>(index);
  }
  // "0003-of-0016"; empty for a whole run.
  std::string name() const;
};

using Environment = std::function<const char*(const char* name)>;

// The part that `flag` ("3/16") names, or else the launcher by its variables: torchrun (RANK, WORLD_SIZE,
// LOCAL_RANK), Open MPI (OMPI_COMM_WORLD_*), Slurm (SLURM_PROCID in a step; SLURM_ARRAY_TASK_ID of an array),
// Kubernetes' indexed jobs (JOB_COMPLETION_INDEX). Where a launcher does not say how many there are, `count`
// does; 0: not given. Throws Error(ExitCode::usage) for what does not fit.
Shard find_shard(const std::string& flag, int count, const Environment& environment);

}  // namespace lamplighter
