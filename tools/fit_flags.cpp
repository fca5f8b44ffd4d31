#include "tools/fit_flags.h"

#include "pipeline/pixel_encoder.h"
#include "tools/help.h"

namespace lamplighter::cli {

CLI::Option* FitFlags::add_fit(CLI::App& command) {
  CLI::Option* flag = command.add_option("--fit", how,
                                         "How an image of another size becomes one of the bundle's: crop "
                                         "(scaled to cover it, the middle stays), "
                                         "pad (scaled to fit inside, with white beside it), stretch");
  return with_choices(command, flag->type_name("HOW")->default_str("crop"), {"crop", "pad", "stretch"});
}

Fit FitFlags::fit() const {
  return parse_fit(how.value_or("crop"));
}

Image FitFlags::apply(const Manifest& manifest, const Image& image, const std::string& where) const {
  return fit_to_bundle(manifest, image, {width, height, fit()}, where);
}

}  // namespace lamplighter::cli
