#include <utility>

#include "lamplighter/sinks.h"
#include "pipeline/metadata/metadata.h"
#include "pipeline/output/codes_file.h"

namespace lamplighter {
namespace {

class CodesSink : public Sink {
 public:
  CodesSink(Origin origin, std::string path, bool overwrite)
      : origin_(std::move(origin)), path_(std::move(path)), overwrite_(overwrite) {}

  void image(std::size_t /*index*/, const Request& request, const Result& result) override {
    images_.push_back({result.codes, describe_image(origin_, request, result)});
  }

  void done() override { write_codes(path_, images_, overwrite_); }
  void stopped() override {
    if (!images_.empty()) done();
  }

 private:
  Origin origin_;
  std::string path_;
  bool overwrite_;
  std::vector<SavedCodes> images_;
};

}  // namespace

std::unique_ptr<Sink> codes_sink(Origin origin, std::string path, bool overwrite) {
  return std::make_unique<CodesSink>(std::move(origin), std::move(path), overwrite);
}

}  // namespace lamplighter
