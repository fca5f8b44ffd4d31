#include <utility>

#include "lamplighter/sinks.h"

namespace lamplighter {
namespace {

class SheetSink : public Sink {
 public:
  explicit SheetSink(std::string path) : path_(std::move(path)) {}

  void picture(std::size_t /*index*/, const Request& /*request*/, const Result& result) override {
    pictures_.push_back(result.image);
  }

  void done() override { write_png(path_, square_sheet(pictures_)); }

 private:
  std::string path_;
  std::vector<Image> pictures_;
};

}  // namespace

std::unique_ptr<Sink> sheet_sink(std::string path) {
  return std::make_unique<SheetSink>(std::move(path));
}

}  // namespace lamplighter
