#include "cli/reports/report_json.h"

namespace warpwright::cli {

nlohmann::ordered_json check_json(const CheckResult& result) {
  nlohmann::ordered_json json;
  json["passed"] = result.passed;
  json["elements"] = result.elements;
  json["failures"] = result.failures;
  json["infinite"] = result.infinite;
  json["nan"] = result.nan;
  json["saturated"] = result.saturated;
  json["overflowed"] = result.overflowed;
  if (result.batch > 1) json["worst_batch"] = result.worst_batch;
  json["worst_row"] = result.worst_row;
  json["worst_column"] = result.worst_col;
  json["worst_ratio"] = result.worst_ratio;  // null where it is infinite
  return json;
}

nlohmann::ordered_json finding_json(const model::Finding& finding) {
  nlohmann::ordered_json json;
  json["check"] = model::code(finding.check);
  json["name"] = model::name(finding.check);
  json["sentence"] = finding.sentence;
  json["file"] = finding.site.file;
  json["line"] = finding.site.line;
  json["accesses"] = nlohmann::ordered_json::array();
  for (const model::Access& a : finding.accesses) {
    json["accesses"].push_back({{"role", a.role},
                                {"cta", a.cta},
                                {"warp", a.warp},
                                {"lane", a.lane},
                                {"file", a.site.file},
                                {"line", a.site.line},
                                {"instruction", a.instruction},
                                {"proxy", a.proxy},
                                {"write", a.write},
                                {"memory", a.memory},
                                {"begin", a.begin},
                                {"bytes", a.bytes}});
  }
  json["missing"] = finding.missing;
  json["mend"] = finding.mend;
  return json;
}

}  // namespace warpwright::cli
