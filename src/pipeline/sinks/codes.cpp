#include <utility>

#include "lamplighter/sinks.h"
#include "pipeline/codes_file.h"
#include "pipeline/metadata.h"

namespace lamplighter {
namespace {

class CodesSink : public Sink {
 public:
  CodesSink(Origin origin, std::string path) : origin_(std::move(origin)), path_(std::move(path)) {}

  void picture(std::size_t /*index*/, const Request& request, const Result& result) override {
    pictures_.push_back({result.codes, describe_picture(origin_, request, result)});
  }

  void done() override { write_codes(path_, pictures_); }

 private:
  Origin origin_;
  std::string path_;
  std::vector<SavedCodes> pictures_;
};

}  // namespace

std::unique_ptr<Sink> codes_sink(Origin origin, std::string path) {
  return std::make_unique<CodesSink>(std::move(origin), std::move(path));
}

}  // namespace lamplighter
