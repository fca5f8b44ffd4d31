#include <utility>

#include "lamplighter/sinks.h"
#include "pipeline/metadata.h"

namespace lamplighter {
namespace {

class PngSink : public Sink {
 public:
  PngSink(Origin origin, std::vector<std::string> paths, bool text, bool overwrite)
      : origin_(std::move(origin)), paths_(std::move(paths)), text_(text), overwrite_(overwrite) {}

  void picture(std::size_t index, const Request& request, const Result& result) override {
    write_png(paths_.at(index), result.image,
              text_ ? png_text(describe_picture(origin_, request, result)) : PngText(), overwrite_);
  }

 private:
  Origin origin_;
  std::vector<std::string> paths_;
  bool text_, overwrite_;
};

}  // namespace

std::unique_ptr<Sink> png_sink(Origin origin, std::vector<std::string> paths, bool text, bool overwrite) {
  return std::make_unique<PngSink>(std::move(origin), std::move(paths), text, overwrite);
}

}  // namespace lamplighter
