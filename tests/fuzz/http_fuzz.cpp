#include <algorithm>

#include "serve/http/origin.h"
#include "serve/http/reader.h"
#include "tests/fuzz/fuzz.h"

namespace lamplighter {
namespace {

// The requests that a reader finds in bytes that come in pieces of a size: method, path, query and body.
std::string read_requests(std::string_view bytes, std::size_t piece) {
  HttpLimits limits;
  limits.line = 512;
  limits.head = 2048;
  limits.body = 4096;
  RequestReader reader(limits);
  const RequestOrigin origin({"lamp.example"}, "https://page.example");
  std::string found;
  try {
    while (!bytes.empty()) {
      reader.read(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      while (true) {
        if (reader.state() == RequestReader::State::body) reader.read_body();
        if (reader.state() != RequestReader::State::complete) break;
        const HttpRequest request = reader.take();
        origin.check(request);
        request.parameter("a");
        found += request.method + " " + request.path + "?" + request.query + " " + request.body + "\n";
        reader.read("");
      }
      if (reader.held() > 2 * (limits.head + limits.body + piece + limits.line)) std::abort();
    }
  } catch (const Error&) {
    found += "refused";
  }
  return found;
}

}  // namespace
}  // namespace lamplighter

// However bytes are cut into pieces, they are the same requests.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string_view text = fuzz::text(bytes, size);
  const std::string whole = read_requests(text, 1000);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}}) {
    if (read_requests(text, piece) != whole) std::abort();
  }
  return 0;
}
