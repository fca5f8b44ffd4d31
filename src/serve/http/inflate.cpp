#include "serve/http/inflate.h"

#include <new>
#include <optional>
#include <utility>

#include "base/inflate.h"
#include "serve/http_error.h"

namespace lamplighter {

std::string inflate_body(std::string_view packed, std::size_t most) {
  std::optional<std::string> text;
  try {
    text = inflate_text(packed, most, Packing::zlib_or_gzip);
  } catch (const std::bad_alloc&) {
    throw HttpError(503, "out_of_memory", "no memory to unpack the body", 10);
  }
  if (!text) throw HttpError(400, "bad_request", "the packed body is damaged");
  if (text->size() > most)
    throw HttpError(413, "body_too_large", "the body is too large when it is unpacked");
  return *std::move(text);
}

}  // namespace lamplighter
