#pragma once

#include <string>
#include <variant>
#include <vector>

#include "image/canvas.h"
#include "image/typeface.h"

namespace lamplighter {

enum class Anchor { start, middle, end };  // what of a text stands at its x

// A drawing on a white ground, as a list of parts; later ones cover earlier ones. A unit is a pixel of its
// images, and of the figure where it becomes pixels; in a PDF file it is 0.75 points. Text is UTF-8.
struct Figure {
  struct Area {
    double left, top, width, height;
    Colour colour;
  };
  struct Line {
    double from_x, from_y, to_x, to_y, width;
    Colour colour;
  };
  struct Text {
    std::string words;
    double x, top, size;  // size: height of a line
    Colour colour;
    Anchor anchor = Anchor::start;
  };
  struct Photo {
    double left, top;
    Image image;
  };
  using Part = std::variant<Area, Line, Text, Photo>;

  double width = 0, height = 0;
  std::vector<Part> parts;
};

// Moves a figure onto another one. Its size stays.
void place(Figure figure, Figure& onto, double left, double top);

// Equal figures give equal pixels and bytes. Pixels show letters of dots, which are ASCII alone; PDF files
// show characters of WinAnsi, and "?" for others.
Image to_pixels(const Figure& figure);
std::string to_svg(const Figure& figure);
std::string to_pdf(const Figure& figure);

// The letters for a file of this name, by its ending: .svg and .pdf have Helvetica.
Typeface typeface_of(const std::string& path);

// Writes SVG or PDF where the name ends in .svg or .pdf, in letters of any size, else as write_image does. A
// failure leaves nothing behind. Throws Error(ExitCode::output).
void write_figure(const std::string& path, const Figure& figure, bool overwrite = true);

// What is expected in the position of a name that ends in a kind of image which write_figure cannot write;
// empty where it can.
std::string refuse_figure_name(const std::string& path);

}  // namespace lamplighter
