#include <utility>

#include "lamplighter/sinks.h"

namespace lamplighter {
namespace {

class SheetSink : public Sink {
 public:
  SheetSink(std::string path, bool overwrite) : path_(std::move(path)), overwrite_(overwrite) {}

  void image(std::size_t /*index*/, const Request& /*request*/, const Result& result) override {
    images_.push_back(result.image);
  }

  void done() override { write_image(path_, square_sheet(images_), {}, overwrite_); }
  void stopped() override {
    if (!images_.empty()) done();
  }

 private:
  std::string path_;
  bool overwrite_;
  std::vector<Image> images_;
};

}  // namespace

std::unique_ptr<Sink> sheet_sink(std::string path, bool overwrite) {
  return std::make_unique<SheetSink>(std::move(path), overwrite);
}

}  // namespace lamplighter
