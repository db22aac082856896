#include "cli/commands/gemm/shared_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>

#include "cli/commands/numbers.h"

namespace warpwright::cli {

void add_machine_option(CLI::App& app, std::string& file) {
  app.add_option("--machine", file,
                 "a device in numbers, as docs/machines.md says and calibrate writes it: plans, "
                 "predictions and the model's nominal time follow it")
      ->type_name("FILE");
}

CLI::Option* add_sms_option(CLI::App& app, RunOptions& o) {
  return app
      .add_option("--sms", o.sms,
                  "SMs of the model, up to 256: fewer of them take more tiles each (default 8, or "
                  "what --cluster and its like need)")
      ->type_name("N")
      ->check(whole(1, 256));
}

std::string refuse_seed(const std::string& text) {
  std::uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc() && end == last) return {};
  return "\"" + text + "\" is no integer from 0 to 18446744073709551615";
}

}  // namespace warpwright::cli
