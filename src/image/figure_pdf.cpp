#include <array>
#include <cstdio>

#include "base/deflate.h"
#include "image/figure.h"
#include "image/figure_numbers.h"
#include "image/helvetica.h"
#include "image/png_chunks.h"

namespace lamplighter {
namespace {

constexpr double kPoints = 0.75;  // of a unit, so that a file prints at the size that browsers give an SVG

// Numbers of the first objects; images follow.
constexpr std::size_t kCatalog = 1, kPages = 2, kPage = 3, kContent = 4, kFont = 5, kImages = 6;

std::string numbers(std::initializer_list<double> values) {
  std::string text;
  for (const double value : values) text += short_number(value) + " ";
  return text;
}

std::string colour_numbers(const Colour& colour) {
  return numbers({colour[0] / 255.0, colour[1] / 255.0, colour[2] / 255.0});
}

std::string stream(const std::string& entries, const std::string& packed) {
  return "<< " + entries + "/Filter /FlateDecode /Length " + std::to_string(packed.size()) + " >>\nstream\n" +
         packed + "\nendstream";
}

// A string object of encoded text.
std::string string_object(const std::string& encoded) {
  std::string text;
  for (const char letter : encoded) {
    if (letter == '(' || letter == ')' || letter == '\\') text += '\\';
    text += letter;
  }
  return "(" + text + ")";
}

// The operators of a part. Pages count y from the bottom.
struct Operators {
  double height;
  std::vector<const Image*>& images;

  std::string operator()(const Figure::Area& area) const {
    return colour_numbers(area.colour) + "rg " +
           numbers({area.left, height - area.top - area.height, area.width, area.height}) + "re f\n";
  }
  std::string operator()(const Figure::Line& line) const {
    return colour_numbers(line.colour) + "RG " + numbers({line.width}) + "w " +
           numbers({line.from_x, height - line.from_y}) + "m " + numbers({line.to_x, height - line.to_y}) +
           "l S\n";
  }
  std::string operator()(const Figure::Text& text) const {
    const std::string encoded = encode_winansi(text.words);
    const double width = helvetica_width(encoded) * text.size;
    const double before = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::end ? width : width / 2;
    return "BT " + colour_numbers(text.colour) + "rg /F " + numbers({text.size}) + "Tf " +
           numbers({text.x - before, height - text.top - kBaseline * text.size}) + "Td " +
           string_object(encoded) + " Tj ET\n";
  }
  std::string operator()(const Figure::Photo& photo) const {
    images.push_back(&photo.image);
    const double width = photo.image.width, tall = photo.image.height;
    return "q " + numbers({width, 0, 0, tall, photo.left, height - photo.top - tall}) + "cm /I" +
           std::to_string(images.size()) + " Do Q\n";
  }
};

// PDF readers know the filters of PNG rows, so the pixels are packed once and for both formats.
std::string image_object(const Image& image) {
  const std::string columns = std::to_string(image.width);
  return stream("/Type /XObject /Subtype /Image /Width " + columns + " /Height " +
                    std::to_string(image.height) +
                    " /ColorSpace /DeviceRGB /BitsPerComponent 8 /DecodeParms << /Predictor 15 /Colors 3 "
                    "/BitsPerComponent 8 /Columns " +
                    columns + " >> ",
                png_data(encode_png(image)));
}

std::string reference(std::size_t object) {
  return std::to_string(object) + " 0 R";
}

std::string page_object(const Figure& figure, std::size_t images) {
  std::string names;
  for (std::size_t i = 0; i < images; ++i)
    names += "/I" + std::to_string(i + 1) + " " + reference(kImages + i) + " ";
  return "<< /Type /Page /Parent " + reference(kPages) + " /MediaBox [0 0 " +
         numbers({kPoints * figure.width, kPoints * figure.height}) + "] /Contents " + reference(kContent) +
         " /Resources << /Font << /F " + reference(kFont) + " >> /XObject << " + names + ">> >> >>";
}

// Writes the objects 1, 2, ... and the table of their offsets, of 20 bytes a line.
std::string file_of(const std::vector<std::string>& objects) {
  std::string file = "%PDF-1.4\n%\xE2\xE3\xCF\xD3\n", table;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    std::array<char, 32> entry{};
    std::snprintf(entry.data(), entry.size(), "%010zu 00000 n \n", file.size());
    table += entry.data();
    file += std::to_string(i + 1) + " 0 obj\n" + objects[i] + "\nendobj\n";
  }
  const std::string start = std::to_string(file.size()), count = std::to_string(objects.size() + 1);
  return file + "xref\n0 " + count + "\n0000000000 65535 f \n" + table + "trailer\n<< /Size " + count +
         " /Root " + reference(kCatalog) + " >>\nstartxref\n" + start + "\n%%EOF\n";
}

}  // namespace

std::string to_pdf(const Figure& figure) {
  std::vector<const Image*> images;
  std::string content = numbers({kPoints, 0, 0, kPoints, 0, 0}) + "cm\n";
  for (const Figure::Part& part : figure.parts) content += std::visit(Operators{figure.height, images}, part);
  std::vector<std::string> objects{
      "<< /Type /Catalog /Pages " + reference(kPages) + " >>",
      "<< /Type /Pages /Kids [" + reference(kPage) + "] /Count 1 >>",
      page_object(figure, images.size()),
      stream("", deflate_text(content)),
      "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
  };
  for (const Image* image : images) objects.push_back(image_object(*image));
  return file_of(objects);
}

}  // namespace lamplighter
