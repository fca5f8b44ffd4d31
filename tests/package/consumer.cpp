#include <lamplighter/lamplighter.h>

int main(int, char** arguments) {
  try {
    lamplighter::TextToImage model(arguments[1]);
    lamplighter::Request request;
    request.prompt = "a white lighthouse on the coast at dusk";
    lamplighter::write_png(arguments[2], model.generate(request).image);
  } catch (const lamplighter::Error& error) {
    return static_cast<int>(error.code());
  }
}
