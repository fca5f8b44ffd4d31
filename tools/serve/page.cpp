#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lamplighter/version.h"
#include "serve/openapi.h"
#include "serve/page/continue_js.h"
#include "serve/page/form_js.h"
#include "serve/page/history_js.h"
#include "serve/page/image_js.h"
#include "serve/page/page_css.h"
#include "serve/page/page_html.h"
#include "serve/page/page_js.h"
#include "serve/page/region_js.h"
#include "serve/page/server_js.h"
#include "tools/serve/routes.h"

// The page, and what describes and measures the server.
namespace lamplighter::cli {

void Routes::add_rest() {
  // The page asks its user for the key, and loads nothing from elsewhere.
  const auto file = [this](const char* path, const char* content, const std::string& type) {
    const auto bytes = std::make_shared<const std::string>(content);
    get(path, Access::open, [bytes, type](const HttpRequest&, HttpResponse& response) {
      response.set_header("Content-Security-Policy",
                          "default-src 'none'; style-src 'self'; script-src 'self'; img-src data: blob:; "
                          "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'");
      response.set_header("Cache-Control", "no-cache");
      response.body = bytes;
      response.type = type + "; charset=utf-8";
    });
  };
  file("/", kServePage, "text/html");
  file("/page.css", kServeStyle, "text/css");
  file("/page.js", kServeScript, "text/javascript");
  file("/image.js", kServeImageScript, "text/javascript");
  file("/form.js", kServeFormScript, "text/javascript");
  file("/region.js", kServeRegionScript, "text/javascript");
  file("/continue.js", kServeContinueScript, "text/javascript");
  file("/server.js", kServeServerScript, "text/javascript");
  file("/history.js", kServeHistoryScript, "text/javascript");
  get(kHealth, Access::open, [this](const HttpRequest&, HttpResponse& response) {
    if (!service_.is_ready()) throw HttpError(503, "loading", "weights are being loaded", 1);
    if (service_.is_closed()) throw HttpError(503, "shutting_down", "the server is stopping", 5);
    send(response, {{"status", "ok"}, {"version", kVersion}});
  });
  const auto description = std::make_shared<std::string>();
  get("/openapi.json", Access::open, [description](const HttpRequest&, HttpResponse& response) {
    response.body = description;
    response.type = kJson;
  });
  get("/metrics", Access::key, [this](const HttpRequest&, HttpResponse& response) {
    response.set_body(service_.metrics_text(), "text/plain; version=0.0.4");
  });
  std::vector<ApiPath> paths;
  for (const Route& route : routes_) paths.push_back({route.method, route.path});
  *description = to_text(describe_api(paths, service_.options.rules)) + "\n";
}

}  // namespace lamplighter::cli
