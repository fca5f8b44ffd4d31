#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>

#include "lamplighter/error.h"
#include "lamplighter/lamplighter.h"

// Runs one engine for hours: every method, several sampling settings, failing and stopped runs.
//   soak BUNDLE SECONDS    compares every image with the same image of a new process, and watches the memory
//   soak BUNDLE one KIND   the new process: prints the codes of one image
// The exit code is 1 if an image differs, or if the memory grows after the first tenth of the time.
namespace lamplighter {
namespace {

using Ids = std::vector<std::int32_t>;
using Clock = std::chrono::steady_clock;

struct Kind {
  MethodOptions method;
  Request request;
};

constexpr std::size_t kRequests = 12;  // per method

// kRequests kinds of images for every method.
std::vector<Kind> kinds() {
  std::vector<MethodOptions> methods(10);
  const char* names[] = {"ar",      "eagle",     "eagle", "eagle", "eagle-2",
                         "lantern", "lantern++", "ngram", "sjd",   "sjd-pac"};
  for (std::size_t i = 0; i < methods.size(); ++i) methods[i].method = names[i];
  methods[1].tree = "chain-4";
  methods[2].tree = "lantern-26";
  methods[3].rule = "traversal";
  std::vector<Kind> all;
  for (const MethodOptions& method : methods) {
    for (std::size_t i = 0; i < kRequests; ++i) {
      Request request;
      request.prompt = std::string("a ") + (i % 2 == 0 ? "red boat on the sea" : "white tent in the snow") +
                       (i % 3 == 0 ? " at night" : "");
      request.seed = i;
      if (i % 4 == 1) request.temperature = 0.0F;
      if (i % 4 == 2) request.cfg_scale = 1.0F;
      if (i % 4 == 3) request.cfg_interval = 40;
      all.push_back({method, request});
    }
  }
  return all;
}

Ids fresh(const std::string& bundle, std::size_t kind) {
  const std::string call =
      "/proc/" + std::to_string(::getpid()) + "/exe '" + bundle + "' one " + std::to_string(kind);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(::popen(call.c_str(), "r"), ::pclose);
  Ids ids;
  for (int id = 0; out && std::fscanf(out.get(), "%d", &id) == 1;) ids.push_back(id);
  return ids;
}

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

class Soak {
 public:
  explicit Soak(std::string bundle) : bundle_(std::move(bundle)), engine_(bundle_) {}

  // Runs up to nine images of one method.
  void step() {
    const std::size_t method = random(all_.size() / kRequests);
    std::vector<std::size_t> chosen(1 + random(9));
    for (std::size_t& kind : chosen) kind = method * kRequests + random(kRequests);
    switch (random(8)) {
      case 0:
        return fail(chosen);
      case 1:
        return stop(chosen);
      default:
        return generate_image(chosen);
    }
  }

  std::size_t images() const { return images_; }
  std::size_t wrong() const { return wrong_; }

 private:
  std::size_t random(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(rng_);
  }

  std::vector<Request> requests(const std::vector<std::size_t>& chosen) const {
    std::vector<Request> requests;
    for (const std::size_t kind : chosen) requests.push_back(all_[kind].request);
    return requests;
  }

  ResultCallback compare(const std::vector<std::size_t>& chosen) {
    return [this, chosen](std::size_t request, Result&& result) {
      const std::size_t kind = chosen[request];
      const auto [known, added] = expected_.try_emplace(kind);
      if (added) known->second = fresh(bundle_, kind);
      ++images_;
      if (result.codes.ids == known->second) return;
      ++wrong_;
      std::cout << "image of kind " << kind << " differs from the image of a new process" << std::endl;
    };
  }

  void generate_image(const std::vector<std::size_t>& chosen) {
    engine_.generate(requests(chosen), compare(chosen), {}, all_[chosen[0]].method);
  }

  void stop(const std::vector<std::size_t>& chosen) {
    std::size_t left = random(100);
    expect_error([&] {
      engine_.generate(
          requests(chosen), compare(chosen), [&](const Progress&) { return left-- > 0; },
          all_[chosen[0]].method);
    });
  }

  // Runs a wrong request, an unknown method, or a callback that throws.
  void fail(const std::vector<std::size_t>& chosen) {
    std::vector<Request> wanted = requests(chosen);
    MethodOptions method = all_[chosen[0]].method;
    ResultCallback result = compare(chosen);
    switch (random(3)) {
      case 0:
        wanted.back().prompt = "\xFF";
        break;
      case 1:
        method.tree = "unknown-tree";
        break;
      default:
        result = [](std::size_t, Result&&) { throw Error(ExitCode::output, "the caller's own"); };
    }
    expect_error([&] { engine_.generate(wanted, result, {}, method); });
  }

  // Accepts success, too: a stopped run may have been complete, and some methods ignore the tree.
  template <class Work>
  static void expect_error(const Work& work) {
    try {
      work();
    } catch (const Error&) {
    }
  }

  std::string bundle_;
  TextToImage engine_;
  std::vector<Kind> all_ = kinds();
  std::map<std::size_t, Ids> expected_;
  std::mt19937 rng_{7};
  std::size_t images_ = 0, wrong_ = 0;
};

int soak(const std::string& bundle, double seconds) {
  constexpr double kSlack = 16;  // MB, for allocators
  Soak soak(bundle);
  const auto begun = Clock::now();
  double base = 0, reported = 0;
  for (double passed = 0; passed < seconds;) {
    soak.step();
    passed = std::chrono::duration<double>(Clock::now() - begun).count();
    if (base == 0 && passed > seconds / 10) base = resident_mb();
    if (passed - reported < std::min(60.0, seconds / 5)) continue;
    reported = passed;
    std::cout << static_cast<long>(passed) << " s, " << soak.images() << " images, " << soak.wrong()
              << " differ, " << static_cast<long>(resident_mb()) << " MB" << std::endl;
  }
  const bool flat = resident_mb() < 1.05 * base + kSlack;
  if (!flat) std::cout << "memory grew from " << base << " MB to " << resident_mb() << " MB" << std::endl;
  return soak.wrong() == 0 && soak.images() > 0 && flat ? 0 : 1;
}

}  // namespace
}  // namespace lamplighter

int main(int argc, char** argv) {
  using namespace lamplighter;
  try {
    if (argc == 3) return soak(argv[1], std::stod(argv[2]));
    if (argc == 4 && std::string(argv[2]) == "one") {
      const Kind kind = kinds().at(std::stoul(argv[3]));
      for (const std::int32_t id : TextToImage(argv[1]).generate(kind.request, kind.method).codes.ids)
        std::cout << id << '\n';
      return 0;
    }
    std::cerr << "usage: soak BUNDLE SECONDS" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "soak: error: " << error.what() << std::endl;
  }
  return 2;
}
