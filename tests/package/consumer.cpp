#include <lamplighter/lamplighter.h>

int main(int, char** arguments) {
  try {
    lamplighter::TextToImage model(arguments[1]);
    lamplighter::Request request;
    request.prompt = "a white lighthouse on the coast at dusk";
    lamplighter::write_png(arguments[2], model.generate(request).image);
    lamplighter::Sinks sinks;
    sinks.push_back(lamplighter::image_sink(lamplighter::describe_origin(model), {arguments[3]}));
    sinks.push_back(lamplighter::trace_sink(lamplighter::describe_origin(model), arguments[4]));
    lamplighter::generate_into(sinks, model, {request});
  } catch (const lamplighter::Error& error) {
    return static_cast<int>(error.code());
  }
}
