#include "image/figure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/files.h"
#include "image/formats.h"
#include "image/lettering.h"

namespace lamplighter {
namespace {

int whole(double value) {
  return static_cast<int>(std::lround(value));
}

// Shifts a part.
struct Shift {
  double right, down;

  void operator()(Figure::Area& area) const {
    area.left += right;
    area.top += down;
  }
  void operator()(Figure::Line& line) const {
    line.from_x += right;
    line.to_x += right;
    line.from_y += down;
    line.to_y += down;
  }
  void operator()(Figure::Text& text) const {
    text.x += right;
    text.top += down;
  }
  void operator()(Figure::Photo& photo) const {
    photo.left += right;
    photo.top += down;
  }
};

// Draws a part on an image.
struct Pixels {
  Image& image;

  void operator()(const Figure::Area& area) const {
    const int left = whole(area.left), top = whole(area.top);
    fill(image, {left, top, whole(area.left + area.width) - left, whole(area.top + area.height) - top},
         area.colour);
  }
  void operator()(const Figure::Line& line) const {
    const double across = line.to_x - line.from_x, down = line.to_y - line.from_y;
    const int steps = std::max(1, whole(std::max(std::abs(across), std::abs(down))));
    const int width = std::max(1, whole(line.width));
    for (int i = 0; i <= steps; ++i) {
      const double x = line.from_x + across * i / steps, y = line.from_y + down * i / steps;
      fill(image, {whole(x - width / 2.0), whole(y - width / 2.0), width, width}, line.colour);
    }
  }
  void operator()(const Figure::Text& text) const {
    const int scale = dot_scale(text.size);
    const double width = text_width(text.words, scale);
    const double before = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::end ? width : width / 2;
    write_text(image, text.words, whole(text.x - before), whole(text.top), text.colour, scale);
  }
  void operator()(const Figure::Photo& photo) const {
    paste(photo.image, image, whole(photo.left), whole(photo.top));
  }
};

}  // namespace

void place(Figure figure, Figure& onto, double left, double top) {
  for (Figure::Part& part : figure.parts) {
    std::visit(Shift{left, top}, part);
    onto.parts.push_back(std::move(part));
  }
}

Image to_pixels(const Figure& figure) {
  Image image = make_canvas(whole(figure.width), whole(figure.height), {255, 255, 255});
  for (const Figure::Part& part : figure.parts) std::visit(Pixels{image}, part);
  return image;
}

Typeface typeface_of(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending == ".svg" || ending == ".pdf" ? Typeface::helvetica : Typeface::dots;
}

void write_figure(const std::string& path, const Figure& figure, bool overwrite) {
  const std::string ending = ending_of(path);
  if (ending == ".svg") return write_file(path, to_svg(figure), overwrite);
  if (ending == ".pdf") return write_file(path, to_pdf(figure), overwrite);
  write_image(path, to_pixels(figure), {}, overwrite);
}

std::string refuse_figure_name(const std::string& path) {
  return refuse_image_name(path).empty() ? "" : "a name that ends in .png, .svg or .pdf";
}

}  // namespace lamplighter
