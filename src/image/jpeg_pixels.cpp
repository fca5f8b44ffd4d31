#include "image/exif.h"
#include "image/formats.h"
#include "image/pixels.h"

#if defined(LAMPLIGHTER_WITH_JPEG)
#include <csetjmp>
#include <cstdio>  // jpeglib.h uses FILE

#include <jerror.h>
#include <jpeglib.h>
#endif

#include <memory>
#include <utility>

namespace lamplighter {

#if defined(LAMPLIGHTER_WITH_JPEG)
namespace {

// libjpeg leaves a file by a jump over its own functions and ours: what it jumps over has no destructors.
struct Reader {
  jpeg_decompress_struct file;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

Reader& reader_of(j_common_ptr file) {
  return *static_cast<Reader*>(file->client_data);
}

[[noreturn]] void leave(j_common_ptr file) {
  Reader& reader = reader_of(file);
  file->err->format_message(file, reader.message);
  std::longjmp(reader.back, 1);
}

// Warnings are about data that are missing or damaged, but for these: cameras write bytes between segments,
// and versions that nothing depends on.
void note(j_common_ptr file, int level) {
  if (level >= 0) return;
  switch (file->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
      return;
    default:
      leave(file);
  }
}

void count_scans(j_common_ptr file) {
  if (reader_of(file).file.input_scan_number <= limits::kJpegScans) return;
  Reader& reader = reader_of(file);
  std::snprintf(reader.message, sizeof reader.message, "it has more than %d scans", limits::kJpegScans);
  std::longjmp(reader.back, 1);
}

// Two steps, between which the caller checks the size. They return false where a file is damaged.
bool read_head(Reader& reader, const unsigned char* bytes, std::size_t size) {
  if (setjmp(reader.back) != 0) return false;
  reader.file.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = leave;
  reader.errors.emit_message = note;
  reader.file.client_data = &reader;
  jpeg_create_decompress(&reader.file);
  reader.progress.progress_monitor = count_scans;
  reader.file.progress = &reader.progress;
  jpeg_mem_src(&reader.file, bytes, size);
  jpeg_read_header(&reader.file, TRUE);
  return true;
}

bool read_pixels(Reader& reader, std::uint8_t* rgba) {
  if (setjmp(reader.back) != 0) return false;
  reader.file.out_color_space = JCS_RGB;
  jpeg_start_decompress(&reader.file);
  const std::size_t width = reader.file.output_width;
  while (reader.file.output_scanline < reader.file.output_height) {
    JSAMPROW row = rgba + 4 * width * reader.file.output_scanline;
    jpeg_read_scanlines(&reader.file, &row, 1);
    for (std::size_t x = width; x-- > 0;) {  // from the end: each pixel moves to the right
      for (std::size_t channel = 3; channel-- > 0;) row[4 * x + channel] = row[3 * x + channel];
      row[4 * x + 3] = 255;
    }
  }
  jpeg_finish_decompress(&reader.file);
  return true;
}

void require_kind(const jpeg_decompress_struct& file, const std::string& path) {
  const J_COLOR_SPACE colours = file.jpeg_color_space;
  if (file.arith_code)
    refuse_image(path, "got a JPEG image with arithmetic coding, expected Huffman coding; convert it to PNG");
  if (colours == JCS_GRAYSCALE || colours == JCS_YCbCr || colours == JCS_RGB) return;
  const bool is_cmyk = colours == JCS_CMYK || colours == JCS_YCCK;
  refuse_image(path, "got a JPEG image with " +
                         (is_cmyk ? "CMYK colours" : std::to_string(file.num_components) + " channels") +
                         ", expected grey or RGB; convert it to RGB");
}

}  // namespace

bool has_libjpeg() {
  return true;
}

ClearImage decode_jpeg(std::string_view bytes, const std::string& path, std::uint64_t most) {
  constexpr std::uint64_t most_per_byte =
      1024;  // a bit or more for each of 64 pixels, twice as wide and high
  struct Guard {
    ~Guard() { jpeg_destroy_decompress(&reader.file); }
    Reader reader{};
  };
  const auto guard = std::make_unique<Guard>();
  Reader& reader = guard->reader;
  const auto damaged = [&](const char* why) {
    refuse_image(path, std::string("damaged JPEG image: ") + why);
  };
  if (!read_head(reader, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()))
    damaged(reader.message);
  require_kind(reader.file, path);
  const std::uint64_t width = reader.file.image_width, height = reader.file.image_height;
  require_pixels(width, height, path, most);
  if (width * height / most_per_byte > bytes.size()) damaged("it is too small for its pixels");
  ClearImage image{static_cast<int>(width), static_cast<int>(height), {}};
  image.pixels.resize(4 * area_of(image.width, image.height));
  if (!read_pixels(reader, image.pixels.data())) damaged(reader.message);
  const std::optional<std::string_view> exif = exif_of_jpeg(bytes);
  return turned(std::move(image), exif ? read_orientation(*exif) : 1);
}
#else
bool has_libjpeg() {
  return false;
}

ClearImage decode_jpeg(std::string_view /*bytes*/, const std::string& path, std::uint64_t /*most*/) {
  refuse_image(path, "cannot read JPEG files: this build has no libjpeg");
}
#endif

}  // namespace lamplighter
