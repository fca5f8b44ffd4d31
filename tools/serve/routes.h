#pragma once

#include <httplib.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "serve/answers.h"
#include "serve/service.h"
#include "tools/serve/http.h"
#include "tools/terminal.h"

// Of builds with cpp-httplib.
namespace lamplighter::cli {

using Ask = httplib::Request;
using Answer = httplib::Response;
using ErrorForm = Json (*)(const Refusal& refusal);

constexpr auto kLook = std::chrono::milliseconds(100);  // how often a client is looked after

void send(Answer& answer, const Json& json, int status = 200);
void send(Answer& answer, const Refusal& refusal, ErrorForm form);

// What is answered to whom. Times, errors, keys and the terminal are the same for all of it.
class Routes {
 public:
  Routes(Service& service, const HttpOptions& options, Terminal& terminal);

  httplib::Server server;
  const HttpOptions options;
  int port = 0;  // that it listens on

 private:
  using Handler = std::function<void(const Ask&, Answer&)>;
  using BodyHandler = std::function<void(const Ask&, const std::string& body, Answer&)>;

  void add_openai();
  void add_webui();
  void add_rest();
  void get(const std::string& path, ErrorForm form, bool open, const Handler& handler);
  void post(const std::string& path, ErrorForm form, const BodyHandler& handler);
  void guard(const std::string& path, ErrorForm form, bool open, const Ask& ask, Answer& answer,
             const std::function<void()>& work);
  void require_key(const Ask& ask) const;

  std::shared_ptr<Order> submit(const PicturesWanted& wanted, Service::Model& model);
  bool wait(const Ask& ask, Order& order);
  Json content_of(const Ask& ask, const Service::Model& model, bool by_url, const Request& request,
                  const Result& result);
  void generations(const Ask& ask, const std::string& body, Answer& answer);
  void stream(const Ask& ask, Answer& answer, const PicturesWanted& wanted, Service::Model& model,
              const std::shared_ptr<Order>& order);
  void txt2img(const Ask& ask, const std::string& body, Answer& answer);
  void progress(Answer& answer);

  Service& service_;
  Terminal& terminal_;
  std::mutex log_;  // for the terminal
};

}  // namespace lamplighter::cli
