#include <utility>

#include "lamplighter/sinks.h"
#include "pipeline/requests/metadata.h"

namespace lamplighter {
namespace {

class PictureSink : public Sink {
 public:
  PictureSink(Origin origin, std::vector<std::string> paths, bool text, bool overwrite)
      : origin_(std::move(origin)), paths_(std::move(paths)), text_(text), overwrite_(overwrite) {}

  void picture(std::size_t index, const Request& request, const Result& result) override {
    write_picture(paths_.at(index), result.image,
                  text_ ? picture_text(describe_picture(origin_, request, result)) : PictureText(),
                  overwrite_);
  }

 private:
  Origin origin_;
  std::vector<std::string> paths_;
  bool text_, overwrite_;
};

}  // namespace

std::unique_ptr<Sink> picture_sink(Origin origin, std::vector<std::string> paths, bool text, bool overwrite) {
  return std::make_unique<PictureSink>(std::move(origin), std::move(paths), text, overwrite);
}

}  // namespace lamplighter
