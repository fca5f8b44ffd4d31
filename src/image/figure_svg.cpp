#include "base/page.h"
#include "base/utf8.h"
#include "image/figure.h"
#include "image/figure_numbers.h"

namespace lamplighter {
namespace {

std::string number(const char* name, double value) {
  return std::string(" ") + name + "=\"" + short_number(value) + "\"";
}

std::string colour_value(const Colour& colour) {
  return "rgb(" + std::to_string(colour[0]) + "," + std::to_string(colour[1]) + "," +
         std::to_string(colour[2]) + ")\"";
}

// XML has no names for control characters and for the two codes that are no characters.
std::string xml_text(const std::string& text) {
  std::u32string safe = decode_utf8(text);
  for (char32_t& code : safe) {
    if (code < 0x20 || code == 0xFFFE || code == 0xFFFF) code = 0xFFFD;
  }
  return html_text(encode_utf8(safe));
}

// The element of a part.
struct Element {
  std::string operator()(const Figure::Area& area) const {
    return "<rect" + number("x", area.left) + number("y", area.top) + number("width", area.width) +
           number("height", area.height) + " fill=\"" + colour_value(area.colour) + "/>";
  }
  std::string operator()(const Figure::Line& line) const {
    return "<line" + number("x1", line.from_x) + number("y1", line.from_y) + number("x2", line.to_x) +
           number("y2", line.to_y) + number("stroke-width", line.width) + " stroke=\"" +
           colour_value(line.colour) + "/>";
  }
  std::string operator()(const Figure::Text& text) const {
    const char* const anchor = text.anchor == Anchor::start ? ""
                               : text.anchor == Anchor::end ? "end"
                                                            : "middle";
    return "<text" + number("x", text.x) + number("y", text.top + kBaseline * text.size) +
           number("font-size", text.size) +
           (*anchor == '\0' ? "" : std::string(" text-anchor=\"") + anchor + "\"") + " fill=\"" +
           colour_value(text.colour) + ">" + xml_text(text.words) + "</text>";
  }
  // Old readers know the name of SVG 1.1 alone, and all know that one.
  std::string operator()(const Figure::Photo& photo) const {
    return "<image" + number("x", photo.left) + number("y", photo.top) + number("width", photo.image.width) +
           number("height", photo.image.height) + " xlink:href=\"" + png_source(encode_png(photo.image)) +
           "\"/>";
  }
};

}  // namespace

std::string to_svg(const Figure& figure) {
  const std::string size = number("width", figure.width) + number("height", figure.height);
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"" +
      size + " viewBox=\"0 0 " + short_number(figure.width) + " " + short_number(figure.height) +
      "\" font-family=\"Helvetica, Arial, 'Liberation Sans', 'Nimbus Sans', sans-serif\">\n<rect" + size +
      " fill=\"white\"/>\n";
  for (const Figure::Part& part : figure.parts) text += std::visit(Element{}, part) + "\n";
  return text + "</svg>\n";
}

}  // namespace lamplighter
