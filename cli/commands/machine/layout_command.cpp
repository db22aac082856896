#include "cli/commands/machine/layout_command.h"

#include <ostream>
#include <string>
#include <variant>

#include "cli/commands/gemm/run.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/atom/values.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"
#include "warpwright/layout/text.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const std::string& expr, const layout::Value& value, bool table) {
  ordered_json json;
  json["expression"] = expr;
  json["kind"] = layout::kind_of(value);
  json["value"] = layout::to_text(value);
  if (const auto* of = std::get_if<layout::Layout>(&value)) {
    const std::int64_t size = layout::size(*of);
    json["rank"] = layout::rank(*of);
    json["size"] = size;
    json["cosize"] = layout::cosize(*of);
    for (std::int64_t i = 0; table && i < size; ++i) json["offsets"].push_back((*of)(i));
  }
  return json;
}

}  // namespace

int layout_command(const std::string& expr, bool table, bool json, std::ostream& out,
                   std::ostream& err) {
  return exit_status(out, err, json, [&] {
    try {
      const layout::Value value = layout::evaluate(expr, atom::copy_functions());
      // Built in full before anything is printed: a refusal leaves no half answer behind. What is
      // too large for a table is refused for programs too.
      const std::string text = table ? layout::to_table(value) : "";
      if (json) {
        out << json_text(to_json(expr, value, table));
      } else {
        out << layout::to_text(value) + "\n" + text;
      }
      return 0;
    } catch (const layout::Error& refusal) {
      throw InputError(refusal.what());
    }
  });
}

}  // namespace warpwright::cli
