#pragma once

#include <functional>
#include <string>

namespace lamplighter {

// The part of a run for one process: captions i with i % count == index.
struct Shard {
  int index = 0, count = 1;
  int local = 0;       // index on this machine; selects the device
  std::string source;  // "--shard", "torchrun", ...; empty: the run is not divided

  bool generates(std::size_t caption) const {
    return caption % static_cast<std::size_t>(count) == static_cast<std::size_t>(index);
  }
  // Like "0003-of-0016"; empty when the run is not divided.
  std::string name() const;
};

using Environment = std::function<const char*(const char* name)>;

// Determines the part from `flag` ("3/16") or from the launcher's variables: torchrun, Open MPI, MVAPICH,
// MPICH and Intel MPI, Slurm's steps, PMIx, blaunch, indexed jobs of Kubernetes and others, and arrays of
// Slurm, SGE, LSF, PBS, Torque and cloud services. Processes that a launcher starts in an element of an array
// share the element's part. `count` is for launchers that do not give the number of processes; 0: not given.
// Throws Error(ExitCode::usage) for inconsistent values, and with what to set where the variables leave open
// which part this is.
Shard find_shard(const std::string& flag, int count, const Environment& environment);

}  // namespace lamplighter
