#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/message.h"
#include "base/utf8.h"
#include "image/pixels.h"
#include "pipeline/metadata/request_fields.h"
#include "pipeline/pixel_encoder.h"
#include "pipeline/region.h"
#include "serve/fields.h"
#include "serve/mask.h"
#include "serve/multipart.h"
#include "serve/openapi.h"
#include "serve/parse.h"

// Requests that bring an image of which a part is kept.
namespace lamplighter {
namespace {

// Fields of a form that are texts, also where they look like numbers.
constexpr std::array<std::string_view, 4> kTexts{"prompt", "negative_prompt", "model", "user"};

// Fields of both forms that say what is kept, and how the rest is generated.
const std::vector<std::string> kPartFields{"keep_rows", "keep_tokens", "region",
                                           "behind",    "candidates",  "pick"};

// Fields of the web UI's form that say the same, and with which image.
const std::vector<std::string> kImg2img{"init_images", "mask",      "inpainting_mask_invert",
                                        "resize_mode", "keep_rows", "keep_tokens",
                                        "region",      "behind",    "candidates",
                                        "pick"};

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void require_utf8(std::string_view text, const std::string& what) {
  if (find_invalid_utf8(text) != std::string_view::npos)
    throw Error(ExitCode::input, "body: " + what + " has bytes that are not UTF-8");
}

// A slip of a field that says what is kept would keep something else.
void refuse_slip(const std::string& key, const std::vector<std::string>& known) {
  const std::string hint = is_in(known, key) ? "" : slip_of(key, known);
  if (!hint.empty()) throw Error(ExitCode::input, "body: unknown field " + excerpt_of(key) + hint);
}

Json value_of(const FormField& field) {
  constexpr std::size_t longest_number = 64, longest_list = 8192;
  const std::string text(field.content);
  const bool is_text = std::find(kTexts.begin(), kTexts.end(), field.name) != kTexts.end();
  if (is_text || text.empty() || text.size() > (text.front() == '[' ? longest_list : longest_number))
    return text;
  try {
    Json value = parse_json(text, kBody, ExitCode::input);
    if (value.is_number() || value.is_boolean() || value.is_array()) return value;
  } catch (const Error&) {  // it is a text
  }
  return text;
}

// Takes the end off a name that marks an item of a list, "name[]".
bool take_brackets(std::string& name) {
  const bool is_item = name.size() > 2 && name.compare(name.size() - 2, 2, "[]") == 0;
  if (is_item) name.resize(name.size() - 2);
  return is_item;
}

// Numbers may be texts, or have a fraction of zero; "" is not given.
void read_forms(Json& own, const std::vector<std::string>& names) {
  drop_empty_texts(own, names);
  read_number_forms(own, {"keep_rows", "keep_tokens", "candidates", "inpainting_mask_invert", "resize_mode"});
  const auto inverts = own.find("inpainting_mask_invert");
  if (inverts != own.end() && inverts->is_boolean()) *inverts = inverts->get<bool>() ? 1 : 0;
}

// "X,Y,WIDTH,HEIGHT", or the four numbers.
Region read_rectangle(JsonReader& reader) {
  const Json& value = reader.value("region");
  if (value.is_string()) return parse_region(value.get<std::string>(), "body: region");
  std::string text;
  for (Json side : value.is_array() ? value : Json::array({value})) {
    make_whole(side);
    text += (text.empty() ? "" : ",") + shorten(side.dump(), 24);
  }
  return parse_region(text, "body: region");
}

void read_how(JsonReader& reader, EditWanted& edit) {
  Region how;
  if (reader.has("behind")) how.behind = reader.choice("behind", {"keep", "redraw"});
  if (reader.has("candidates")) how.candidates = static_cast<int>(reader.integer("candidates", 1, 256));
  if (reader.has("pick")) how.pick = reader.choice("pick", {"best", "sample"});
  if (!reader.has("behind") && !reader.has("candidates") && !reader.has("pick")) return;
  if (edit.mask.empty() && !edit.part.region && !edit.marks_itself) {
    reader.fail(std::string(reader.has("behind")       ? "behind"
                            : reader.has("candidates") ? "candidates"
                                                       : "pick") +
                ": got it without a region, expected region or mask beside it");
  }
  edit.how = how;
}

// Both forms say what is kept by a mask, by a number, or by the region that is not; forms also by the image.
void read_part(JsonReader& reader, EditWanted& edit) {
  edit.part.region_name = "region";
  if (reader.has("keep_rows")) edit.part.rows = reader.integer("keep_rows", 1);
  if (reader.has("keep_tokens")) edit.part.tokens = reader.integer("keep_tokens", 1);
  if (reader.has("region")) edit.part.region = read_rectangle(reader);
  const bool is_given = edit.part.rows || edit.part.tokens || edit.part.region;
  if (is_given && !edit.mask.empty())
    reader.fail("got mask and keep_rows, keep_tokens or region, expected one of them");
  edit.marks_itself = !is_given && edit.mask.empty() && edit.form == MaskForm::clear;
  if (!is_given && edit.mask.empty() && !edit.marks_itself) refuse_no_mask(edit.form);
  read_how(reader, edit);
}

// Candidates take as long as images.
void check_candidates(const ImagesWanted& wanted, const RequestLimits& limits) {
  const int candidates = wanted.edit->how ? wanted.edit->how->candidates : 1;
  if (wanted.count * candidates <= limits.images) return;
  throw Error(ExitCode::input, "body: candidates: got " + std::to_string(candidates) + " for " +
                                   counted(wanted.count, "image") + ", expected at most " +
                                   std::to_string(limits.images) + " in all");
}

// The web UI's ways to give an image another size.
Fit fit_of(std::int64_t resize_mode) {
  return resize_mode == 1 ? Fit::crop : resize_mode == 2 ? Fit::pad : Fit::stretch;
}

}  // namespace

ImagesWanted parse_edits(std::string_view content_type, std::string_view body, const RequestRules& rules) {
  return with_http_errors([&] {
    EditWanted edit;
    Json fields = Json::object(), own = Json::object();
    for (FormField& field : parse_form(content_type, body)) {
      const bool is_item = take_brackets(field.name);
      const bool is_image = field.name == "image";
      if (is_image || field.name == "mask") {
        std::string& file = is_image ? edit.image : edit.mask;
        if (!file.empty()) throw Error(ExitCode::input, field.name + ": got several, expected one");
        if (field.content.empty() && is_image) throw Error(ExitCode::input, "image: got an empty file");
        file = field.content;
        continue;
      }
      require_utf8(field.name, "the name of a field");
      if (!is_in(generation_fields(), field.name)) refuse_slip(field.name, edit_fields());
      require_utf8(field.content, "field " + excerpt_of(field.name));
      Json& target = is_in(edit_fields(), field.name) ? own : fields;
      Json& value = target[field.name];
      if (!value.is_null() && !(is_item && value.is_array()))
        throw Error(ExitCode::input, "body: field " + excerpt_of(field.name) + " is there twice");
      if (is_item) {
        value.push_back(value_of(field));
      } else {
        value = value_of(field);
      }
    }
    if (edit.image.empty()) throw Error(ExitCode::input, "image: got none, expected " + a_readable("file"));
    read_forms(own, edit_fields());
    JsonReader reader(own, kBody, ExitCode::input);
    read_part(reader, edit);
    if (reader.has("fit")) edit.fit = parse_fit(reader.text("fit"));
    ImagesWanted wanted = parse_generations(to_text(fields), rules);
    wanted.edit = std::move(edit);
    check_candidates(wanted, rules.limits);
    return wanted;
  });
}

ImagesWanted parse_img2img(const Json& body, const RequestRules& rules) {
  return with_http_errors([&] {
    ImagesWanted wanted = parse_txt2img(body, rules);
    for (const std::string& key : wanted.unused) refuse_slip(key, kPartFields);
    Json own = Json::object();
    for (const std::string& key : kImg2img) {
      if (body.contains(key)) own[key] = body[key];
    }
    read_forms(own, kImg2img);
    JsonReader reader(own, kBody, ExitCode::input);
    if (!reader.has("init_images") || !own["init_images"].is_array() || own["init_images"].size() != 1)
      reader.fail("init_images: expected a list of one image file in base64");
    EditWanted edit;
    edit.image = read_base64(own["init_images"][0], "init_images", a_readable("file"));
    if (reader.has("mask")) edit.mask = read_base64(own["mask"], "mask", a_readable("file"));
    const bool is_inverted =
        reader.has("inpainting_mask_invert") && reader.integer("inpainting_mask_invert", 0, 1) == 1;
    edit.form = is_inverted ? MaskForm::black : MaskForm::white;
    edit.fit = fit_of(reader.has("resize_mode") ? reader.integer("resize_mode", 0, 3) : 0);
    read_part(reader, edit);
    wanted.edit = std::move(edit);
    check_candidates(wanted, rules.limits);
    wanted.unused.erase(std::remove_if(wanted.unused.begin(), wanted.unused.end(),
                                       [](const std::string& key) { return is_in(kImg2img, key); }),
                        wanted.unused.end());
    return wanted;
  });
}

}  // namespace lamplighter
