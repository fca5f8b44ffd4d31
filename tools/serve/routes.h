#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/answers.h"
#include "serve/http/origin.h"
#include "serve/http/request.h"
#include "serve/http/response.h"
#include "serve/http/server.h"
#include "serve/service.h"
#include "tools/serve/http.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

using ErrorForm = Json (*)(const HttpError& error);

inline constexpr const char *kJson = "application/json", *kHealth = "/health";
constexpr auto kPollClient = std::chrono::milliseconds(100);  // how often a client that waits is checked

void send(HttpResponse& response, const Json& json, int status = 200);
void send(HttpResponse& response, const HttpError& error, ErrorForm form);

// The handlers of all paths. Times, errors, keys and the log are the same for all of them.
class Routes : public HttpHandler {
 public:
  Routes(Service& service, const HttpOptions& options, Terminal& terminal);

  void admit(const HttpRequest& head) override;
  void answer(HttpRequest& request, HttpResponse& response) override;
  bool is_quick(const HttpRequest& request) const override;
  HttpResponse refuse(const HttpError& error, const std::string& path) override;
  std::string label(const std::string& path) const override;
  void answered(const std::string& method, const std::string& label, int status, double seconds) override;

  const HttpOptions options;
  int port = 0;  // that it listens on

 private:
  using Handler = std::function<void(HttpRequest&, HttpResponse&)>;
  enum class Access { open, key };
  enum class Body { json, form, any };  // of a POST

  struct Route {
    std::string method, path;  // "/v1/models/*": with more behind the slash
    Access access;
    Body body;
    Handler handler;

    bool matches(const std::string& asked) const;
  };

  void add_openai();
  void add_chat();
  void add_webui();
  void add_rest();
  void get(const std::string& path, Access access, Handler handler);
  void post(const std::string& path, Body body, Handler handler);
  const Route* find(const HttpRequest& request) const;
  std::string methods_of(const std::string& path) const;  // "GET, HEAD"; empty where there is no such path
  std::string meant(const std::string& asked) const;
  [[noreturn]] void refuse_path(const HttpRequest& request) const;
  void fail(HttpResponse& response, const HttpError& error, const std::string& path) const;
  void check_head(const Route& route, const HttpRequest& head) const;
  std::shared_ptr<void> unpack_body(HttpRequest& request);
  void require_key(const HttpRequest& request) const;
  void add_cors(HttpResponse& response) const;

  // A request that an engine works on.
  struct Submission {
    ImagesWanted wanted;
    Service::Model* model = nullptr;
    std::shared_ptr<Job> job;
    std::vector<std::string> warnings;  // of all images
  };
  Submission submit(ImagesWanted wanted, bool follows);
  bool wait(const HttpRequest& request, Job& job);
  std::string own_address(const HttpRequest& asked) const;
  Json content_of(const HttpRequest& asked, const Submission& submission, const Request& request,
                  const Result& result);
  void images(ImagesWanted parsed, const HttpRequest& request, HttpResponse& response);
  void require_reader() const;
  void require_speaker() const;
  void edits(HttpRequest& request, HttpResponse& response);
  void stream(const HttpRequest& asked, HttpResponse& response, const Submission& submission);
  void chat(HttpRequest& request, HttpResponse& response);
  Service::Model& named_model(const std::string& name);

  // Images of the web UI's API, which any client may look at and the client that asked may interrupt.
  struct WebuiWork {
    std::string client;
    std::weak_ptr<Job> job;
    Service::Model* model = nullptr;
  };
  void add_webui_lists();
  // `parameters`: of the request, as the answer repeats them.
  void webui_images(ImagesWanted wanted, const Json& parameters, const HttpRequest& asked,
                    HttpResponse& response);
  void img2img(HttpRequest& asked, HttpResponse& response);
  void interrupt(const HttpRequest& asked);
  void progress(const HttpRequest& asked, HttpResponse& response);
  std::string current_image();
  bool has_webui_work();
  std::vector<std::shared_ptr<Job>> jobs_of(const std::string& client);  // of the web UI
  void png_info(const HttpRequest& asked, HttpResponse& response);

  Service& service_;
  Terminal& terminal_;
  const RequestOrigin origin_;
  std::vector<Route> routes_;
  std::mutex work_mutex_, decoding_, unpacking_;
  std::atomic<std::size_t> unpacked_{0};  // bytes
  std::vector<WebuiWork> work_;
  struct {
    std::weak_ptr<Job> job;
    std::size_t image = 0;
    int rows = 0;
    std::string base64;
  } shown_;  // guarded by decoding_
};

// What stands behind the last slash of a path.
std::string last_part(const std::string& path);

// Headers with a line of each warning.
void add_warnings(HttpResponse& response, const std::vector<std::string>& warnings);

// Warnings of a request, and of its images' captions, each once.
std::vector<std::string> all_warnings(const std::vector<std::string>& warnings, const Manifest& manifest,
                                      const Job& job);

}  // namespace lamplighter::cli
