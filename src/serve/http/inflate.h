#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Unpacks a body of Content-Encoding gzip or deflate. Throws HttpError: 400 where it is damaged, 413 above
// `most` bytes.
std::string inflate_body(std::string_view packed, std::size_t most);

}  // namespace lamplighter
