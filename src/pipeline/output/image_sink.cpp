#include <utility>

#include "lamplighter/sinks.h"
#include "pipeline/metadata/metadata.h"

namespace lamplighter {
namespace {

class ImageSink : public Sink {
 public:
  ImageSink(Origin origin, std::vector<std::string> paths, bool text, bool overwrite)
      : origin_(std::move(origin)), paths_(std::move(paths)), text_(text), overwrite_(overwrite) {}

  void image(std::size_t index, const Request& request, const Result& result) override {
    write_image(paths_.at(index), result.image,
                text_ ? image_text(describe_image(origin_, request, result)) : ImageText(), overwrite_);
  }

 private:
  Origin origin_;
  std::vector<std::string> paths_;
  bool text_, overwrite_;
};

}  // namespace

std::unique_ptr<Sink> image_sink(Origin origin, std::vector<std::string> paths, bool text, bool overwrite) {
  return std::make_unique<ImageSink>(std::move(origin), std::move(paths), text, overwrite);
}

}  // namespace lamplighter
