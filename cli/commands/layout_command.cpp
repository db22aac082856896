#include "cli/commands/layout_command.h"

#include <ostream>
#include <string>

#include "cli/files/printable.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"

namespace warpwright::cli {

int layout_command(const std::string& expr, bool table, std::ostream& out, std::ostream& err) {
  try {
    const layout::Value value = layout::evaluate(expr);
    // Built in full before anything is printed: a refusal leaves no half answer behind.
    std::string text = layout::to_text(value) + "\n";
    if (table) text += layout::to_table(value);
    out << text;
    return 0;
  } catch (const layout::Error& refusal) {
    err << printable(refusal.what()) << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
