#include <algorithm>
#include <utility>

#include "tools/serve/routes.h"

// Images that are given: a part of them is kept, and the rest is generated anew.
namespace lamplighter::cli {

// Throws HttpError (501) where no model here can read images, whatever the request asks for.
void Routes::require_reader() const {
  const auto& models = service_.models();
  const bool is_there = std::any_of(models.begin(), models.end(), [](const auto& model) {
    return model->engine.manifest().has("image_encoder");
  });
  if (!is_there) require_image_encoder(models.front()->engine.manifest());
}

void Routes::edits(HttpRequest& request, HttpResponse& response) {
  require_reader();
  const std::string body = std::exchange(request.body, {});
  images(parse_edits(*request.header("content-type"), body, service_.options.rules), request, response);
}

// As in the web UI, the answer does not repeat the files.
void Routes::img2img(HttpRequest& asked, HttpResponse& response) {
  require_reader();
  Json body = parse_body(std::exchange(asked.body, {}));
  ImagesWanted wanted = parse_img2img(body, service_.options.rules);
  body.erase("init_images");
  body.erase("mask");
  webui_images(std::move(wanted), body, asked, response);
}

}  // namespace lamplighter::cli
