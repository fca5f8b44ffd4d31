// The native part of the Python package: the public headers, with arrays and dictionaries in their place.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "lamplighter/lamplighter.h"
#include "pipeline/continued.h"
#include "pipeline/pixel_encoder.h"
#include "tools/python/values.h"

namespace py = pybind11;

namespace lamplighter::python {
namespace {

constexpr const char* kKeep = "keep";  // what messages call another image that has no path

// Name, name of a Python type, meaning and choices.
py::list options_of_methods() {
  constexpr const char* types[] = {"str", "int", "float", "list"};
  py::list options;
  for (const OptionField& field : option_fields())
    options.append(
        py::make_tuple(field.name, types[static_cast<int>(field.type)], field.meaning, field.choices));
  return options;
}

// Calls Python while the engine generates without the interpreter's lock. What Python raises stops the run
// and is raised again at its end.
class Listener {
 public:
  Listener(std::size_t images, py::function on_result, py::object on_row, py::object on_progress)
      : rows_(images),
        on_result_(std::move(on_result)),
        on_row_(std::move(on_row)),
        on_progress_(std::move(on_progress)) {}

  bool progress(const Progress& progress) {
    return with_python([&] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!on_progress_.is_none()) on_progress_(progress.run_done, progress.run_total);
      if (on_row_.is_none()) return;
      for (const std::size_t index : progress.requests)
        report_rows(index, progress.codes(index), progress.grid->columns);
    });
  }

  void image(std::size_t index, const Result& result, const std::string& description,
             const std::vector<std::string>& warnings) {
    with_python([&] {
      if (!on_row_.is_none()) report_rows(index, result.codes.ids, result.codes.columns);
      on_result_(index, pixels_of(result.image),
                 codes_of(result.codes.ids,
                          result.codes.ids.empty() ? 0 : static_cast<std::size_t>(result.codes.rows),
                          result.codes.columns),
                 statistics_of(result.statistics), tokens_per_pass_of(result), description, warnings);
    });
  }

  void raise() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  template <class F>
  bool with_python(F f) {
    const py::gil_scoped_acquire lock;
    if (raised_) return false;
    try {
      f();
    } catch (...) {
      raised_ = std::current_exception();
    }
    return !raised_;
  }

  void report_rows(std::size_t index, const std::vector<std::int32_t>& codes, int columns) {
    const std::size_t complete = codes.size() / static_cast<std::size_t>(columns);
    for (std::size_t& row = rows_[index]; row < complete;) {
      ++row;
      on_row_(index, row - 1, codes_of(codes, row, columns));
    }
  }

  std::vector<std::size_t> rows_;  // of each image that Python has seen
  py::function on_result_;
  py::object on_row_, on_progress_;
  std::exception_ptr raised_;
};

class Engine {
 public:
  Engine(const std::string& bundle, const RuntimeOptions& options)
      : engine_((require_generatable(read_manifest(bundle)), bundle), options),
        origin_(describe_origin(engine_)) {}

  const Origin& origin() const { return origin_; }
  const TextToImage& text_to_image() const { return engine_; }

  void generate(const std::vector<std::string>& records, const py::function& on_result,
                const py::object& on_row, const py::object& on_progress,
                const std::optional<Continued>& continued, std::optional<std::int64_t> keep_rows,
                std::optional<std::int64_t> keep_tokens, const std::optional<Region>& region,
                const std::optional<std::string>& fit) {
    std::vector<Request> requests;
    MethodOptions method;
    for (const std::string& record : records) {
      requests.push_back(parse_request(record));
      method = requests.back().method.value_or(MethodOptions{});
      requests.back().method.reset();
    }
    Listener listener(requests.size(), on_result, on_row, on_progress);
    try {
      const py::gil_scoped_release unlocked;
      if (continued && !requests.empty()) {
        Continued begins = *continued;
        if (begins.image) {
          fit_to_request(engine_.manifest(), requests.front(), parse_fit(fit.value_or("crop")), begins);
        } else if (fit) {
          throw Error(ExitCode::usage, "fit: got it beside codes, expected an image as " + begins.from);
        }
        keep_part({keep_rows, keep_tokens, "keep_rows", "keep_tokens", region, "region"}, begins);
        begin_with(begins, engine_, requests);
      }
      std::vector<std::vector<std::string>> warnings;
      for (const Request& request : requests) warnings.push_back(engine_.notes(request));
      engine_.generate(
          requests,
          [&](std::size_t index, Result&& result) {
            listener.image(index, result, describe(origin_, requests[index], result), warnings[index]);
          },
          [&](const Progress& progress) { return listener.progress(progress); }, method);
    } catch (const Error& error) {
      if (error.code() == ExitCode::interrupted) listener.raise();
      throw;
    }
    listener.raise();
  }

  // record: the sampling, the method and its options.
  py::tuple describe_one(const std::string& record, const std::string& prompt, const PixelArray& pixels,
                         const std::string& fit, std::optional<std::int64_t> max_tokens,
                         const py::object& on_text) {
    const Request sampled = parse_request(record);
    DescribeRequest request{image_of(pixels), parse_fit(fit),      prompt,        sampled.seed,
                            max_tokens,       sampled.temperature, sampled.top_p, sampled.top_k};
    std::exception_ptr raised;
    const auto listen = [&](const std::string& more) {
      const py::gil_scoped_acquire lock;
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (!on_text.is_none() && !more.empty()) on_text(more);
      } catch (...) {
        raised = std::current_exception();
      }
      return !raised;
    };
    Description result;
    try {
      const py::gil_scoped_release unlocked;
      result = engine_.describe(request, sampled.method.value_or(MethodOptions{}), listen);
    } catch (const Error&) {
      if (raised) std::rethrow_exception(raised);
      throw;
    }
    return py::make_tuple(result.text, result.is_cut ? "length" : "stop", result.prompt_tokens, result.ids,
                          statistics_of(result.statistics));
  }

  py::array decode(const CodeArray& codes) {
    const Codes ids = codes_in(codes);
    Image image;
    {
      const py::gil_scoped_release unlocked;
      image = engine_.decode(ids);
    }
    return pixels_of(image);
  }

  py::array encode(const PixelArray& pixels, std::optional<int> width, std::optional<int> height,
                   const std::string& fit) {
    const Image image = image_of(pixels);
    Codes codes;
    {
      const py::gil_scoped_release unlocked;
      const WantedSize wanted{width, height, parse_fit(fit)};
      codes = engine_.encode(fit_to_bundle(engine_.manifest(), image, wanted, "image"));
    }
    return codes_of(codes.ids, static_cast<std::size_t>(codes.rows), codes.columns);
  }

 private:
  TextToImage engine_;
  Origin origin_;
};

std::unique_ptr<Engine> open(const std::string& bundle, RuntimeOptions options, const py::function& note) {
  // The engine copies and drops the callback while it does not hold the interpreter's lock.
  const std::shared_ptr<py::function> shared(new py::function(note), [](py::function* function) {
    const py::gil_scoped_acquire lock;
    delete function;
  });
  options.note = [shared](const std::string& text) {
    const py::gil_scoped_acquire lock;
    (*shared)(text);
  };
  const py::gil_scoped_release unlocked;
  return std::make_unique<Engine>(bundle, options);
}

}  // namespace
}  // namespace lamplighter::python

PYBIND11_MODULE(_native, module) {
  using namespace lamplighter;
  using lamplighter::python::Engine;
  module.attr("version") = kVersion;
  py::dict meanings;
  for (const auto& [name, meaning] : method_meanings()) meanings[py::str(name)] = meaning;
  module.attr("methods") = meanings;
  module.attr("options") = lamplighter::python::options_of_methods();
  // The package sets what stands for Error: a class that takes a message and an exit code.
  module.attr("error_class") = py::none();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const py::object type = py::module_::import("lamplighter._native").attr("error_class");
      PyErr_SetObject(type.ptr(), type(py::str(error.what()), static_cast<int>(error.code())).ptr());
    }
  });
  py::class_<RuntimeOptions>(module, "RuntimeOptions")
      .def(py::init<>())
      .def_readwrite("device", &RuntimeOptions::device)
      .def_readwrite("dtype", &RuntimeOptions::dtype)
      .def_readwrite("cache_dtype", &RuntimeOptions::cache_dtype)
      .def_readwrite("threads", &RuntimeOptions::threads)
      .def_readwrite("batch_size", &RuntimeOptions::batch_size)
      .def_readwrite("graph", &RuntimeOptions::graph)
      .def_readwrite("verify_checksums", &RuntimeOptions::verify_checksums);
  using lamplighter::python::kKeep;
  py::class_<Continued>(module, "Continued")
      .def_static(
          "of_file", [](const std::string& path) { return parse_continued(read_input(path), path); },
          py::call_guard<py::gil_scoped_release>())
      .def_static("of_bytes",
                  [](const py::bytes& content) { return parse_continued(std::string_view(content), kKeep); })
      .def_static("of_pixels",
                  [](const lamplighter::python::PixelArray& pixels) {
                    return Continued{kKeep, {}, 0, lamplighter::python::image_of(pixels)};
                  })
      .def_static("of_codes", [](const lamplighter::python::CodeArray& codes) {
        return Continued{kKeep, lamplighter::python::codes_in(codes), 0, std::nullopt};
      });
  py::class_<Region>(module, "Region")
      .def(py::init(
          [](int x, int y, int width, int height, const std::string& behind, int candidates,
             const std::string& pick) { return Region{x, y, width, height, behind, candidates, pick}; }));
  py::class_<Engine>(module, "Engine")
      .def(py::init(&lamplighter::python::open), py::arg("bundle"), py::arg("options"), py::arg("note"))
      .def_property_readonly("model", [](const Engine& engine) { return engine.origin().model; })
      .def_property_readonly("device", [](const Engine& engine) { return engine.text_to_image().device(); })
      .def_property_readonly("dtype", [](const Engine& engine) { return engine.text_to_image().dtype(); })
      .def("generate", &Engine::generate, py::arg("records"), py::arg("on_result"), py::arg("on_row"),
           py::arg("on_progress"), py::arg("continued"), py::arg("keep_rows"), py::arg("keep_tokens"),
           py::arg("region"), py::arg("fit"))
      .def("describe", &Engine::describe_one, py::arg("record"), py::arg("prompt"), py::arg("pixels"),
           py::arg("fit"), py::arg("max_tokens"), py::arg("on_text"))
      .def("decode", &Engine::decode, py::arg("codes"))
      .def("encode", &Engine::encode, py::arg("pixels"), py::arg("width"), py::arg("height"), py::arg("fit"));
}
