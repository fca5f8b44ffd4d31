#include "tools/commands/bench_startup.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/stopwatch.h"
#include "lamplighter/bundle.h"
#include "lamplighter/error.h"

extern char** environ;

namespace lamplighter::cli {
namespace {

namespace fs = std::filesystem;

struct Times {
  std::vector<double> wall_ms, processor_ms;
};

// A temporary folder, which its destructor removes.
class WorkFolder {
 public:
  WorkFolder() {
    std::string name = (fs::temp_directory_path() / "lamplighter-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error(ExitCode::output, "cannot create a folder " + name);
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

// Times one process and drops its output.
void time_process(std::vector<std::string> words, Times& times) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t silent;
  posix_spawn_file_actions_init(&silent);
  posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  Stopwatch watch;
  pid_t process = 0;
  const int failed = ::posix_spawn(&process, words[0].c_str(), &silent, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&silent);
  int status = 0;
  rusage used{};
  if (failed != 0 || ::wait4(process, &status, 0, &used) < 0 || status != 0)
    throw Error(ExitCode::some_failed, "startup: " + words[0] + " " + words[1] + " failed");
  times.wall_ms.push_back(watch.lap());
  times.processor_ms.push_back(milliseconds(used.ru_utime) + milliseconds(used.ru_stime));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::string> image_words(const BenchFlags& flags, const fs::path& folder) {
  const RuntimeOptions runtime = flags.model.options();
  std::vector<std::string> words{"generate",
                                 "-q",
                                 "-p",
                                 flags.jobs.prompts.empty()
                                     ? default_prompts(read_manifest(flags.model.folder())).front()
                                     : flags.jobs.prompts.front(),
                                 "-m",
                                 flags.model.folder(),
                                 "--device",
                                 runtime.device,
                                 "--dtype",
                                 runtime.dtype,
                                 "--cache-dtype",
                                 runtime.cache_dtype,
                                 "--threads",
                                 std::to_string(runtime.threads),
                                 "--overwrite",
                                 "-o",
                                 (folder / "image.png").string()};
  if (!runtime.verify_checksums) words.emplace_back("--skip-checksums");
  return words;
}

}  // namespace

BenchResults bench_startup(const BenchFlags& flags, Terminal& terminal) {
  const WorkFolder folder;
  const fs::path engine = fs::read_symlink("/proc/self/exe");
  const std::string program = (engine.parent_path() / "lamplighter").string();
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands{
      {"--version", {"--version"}},
      {"generate --help", {"generate", "--help"}},
      {"generate, start to written image", image_words(flags, folder.path())}};
  std::vector<Times> times(commands.size());
  const int repeats = static_cast<int>(flags.repeats.value_or(10));
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      std::vector<std::string> words{program};
      words.insert(words.end(), commands[i].second.begin(), commands[i].second.end());
      Times first;  // reads files into the page cache
      time_process(std::move(words), repeat == 0 ? first : times[i]);
    }
    terminal.detail("round " + std::to_string(repeat) + " of " + std::to_string(repeats));
  }
  BenchResults results;
  results.heading = {"whole processes, median of " + std::to_string(repeats) +
                     " interleaved repeats after a warm-up"};
  results.json["startup"] = Json::array();
  Table table{{"command", "ms", "least", "processor ms"}, {}};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::vector<double>& wall = times[i].wall_ms;
    table.rows.push_back({commands[i].first, format_fixed(median(wall), 1),
                          format_fixed(*std::min_element(wall.begin(), wall.end()), 1),
                          format_fixed(median(times[i].processor_ms), 1)});
    results.json["startup"].push_back(
        {{"command", commands[i].first}, {"wall_ms", wall}, {"processor_ms", times[i].processor_ms}});
  }
  results.tables.push_back(std::move(table));
  return results;
}

}  // namespace lamplighter::cli
