#include "warpwright/facts/machines.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "warpwright/facts/known_machine_texts.h"

namespace warpwright {

namespace {

using Json = nlohmann::json;

std::string in_words(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string within(const NumberRule& rule) {
  return "it must be " + in_words(rule.lowest) + " to " + in_words(rule.highest);
}

// For a number, or of one of a curve's, that a machine has or must have.
std::optional<std::string> value_fault(const std::string& name, const NumberRule& rule,
                                       double value) {
  if (value >= rule.lowest && value <= rule.highest) return std::nullopt;
  if (std::isnan(value)) return name + " is no number; " + within(rule) + ".";
  return name + " is " + in_words(value) + "; " + within(rule) + ".";
}

std::optional<std::string> curve_fault(const NumberRule& rule, const ClockCurve& curve) {
  int before = 0;
  double clocks = 0;
  for (const auto& [size, value] : curve.points) {
    const std::string name = std::string(rule.name) + " at " + std::to_string(size);
    if (size <= before || size > 4096) return name + ": its sizes must ascend, from 1 to 4096.";
    if (auto fault = value_fault(name, rule, value)) return fault;
    if (value < clocks)
      return name + " is " + in_words(value) + ", less than a smaller size takes.";
    before = size;
    clocks = value;
  }
  return std::nullopt;
}

std::string words(const MmaClocks& entry) {
  std::string text = "mma_sync m" + std::to_string(entry.m) + "n" + std::to_string(entry.n) + "k" +
                     std::to_string(entry.k);
  for (const DType type : entry.types) text += " " + std::string(numeric::name(type));
  return text;
}

// The one MMA that a row of atom/mma.h makes of these types.
atom::Mma mma_of(const atom::MmaRow& row, DType type, DType sums) {
  return {.kind = row.kind,
          .m = row.m,
          .n = row.n,
          .k = row.k,
          .a = type,
          .b = type,
          .sums = sums,
          .scale_block = row.scale_block,
          .scale = row.scale};
}

std::optional<std::string> mma_fault(const MachineNumbers& machine) {
  for (const MmaClocks& entry : machine.mma_sync) {
    constexpr NumberRule clocks{"clocks", 0.25, 10000};
    constexpr NumberRule latency{"latency", 1, 10000};
    if (auto f = value_fault(words(entry) + ": clocks", clocks, entry.clocks)) return f;
    if (auto f = value_fault(words(entry) + ": latency", latency, entry.latency)) return f;
    if (entry.source.empty()) return words(entry) + " has no source.";
  }
  for (const atom::MmaRow& row : atom::kMmaRows) {
    for (int a = 0; a < kDTypeCount; ++a) {
      for (int c = 0; c < kDTypeCount; ++c) {
        const atom::Mma mma = mma_of(row, static_cast<DType>(a), static_cast<DType>(c));
        if (!atom::is_of(mma, row)) continue;
        if (atom::mma_support(mma, machine.architecture) != atom::MmaSupport::native) continue;
        if (find_mma(machine, mma) != nullptr) continue;
        MmaClocks lacking;
        lacking.m = row.m;
        lacking.n = row.n;
        lacking.k = row.k;
        lacking.types = {mma.a};
        return words(lacking) + " with sums of " + std::string(numeric::name(mma.sums)) +
               (row.scale_block > 0 ? " and scales" : "") + " is missing.";
      }
    }
  }
  return std::nullopt;
}

double number_of(const Json& json, const std::string& name) {
  if (json.is_number()) return json.get<double>();
  throw MachineError(name + " is " + json.dump() + "; it must be a number.");
}

std::string text_of(const Json& json, const std::string& name) {
  if (json.is_string() && !json.get<std::string>().empty()) return json.get<std::string>();
  throw MachineError(name + " is " + json.dump() + "; it must be a text.");
}

const Json& member(const Json& json, const char* name, const std::string& of) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  if (found == json.end()) throw MachineError(of + name + " is missing.");
  return *found;
}

int integer_of(const Json& json, const char* name, int least, int most) {
  const double value = number_of(member(json, name, ""), name);
  if (value >= least && value <= most && value == std::floor(value)) return static_cast<int>(value);
  throw MachineError(std::string(name) + " is " + in_words(value) +
                     "; it must be a whole number, " + std::to_string(least) + " to " +
                     std::to_string(most) + ".");
}

// A pair of a value and where it comes from.
std::pair<const Json*, std::string> sourced(const Json& json, const std::string& name) {
  if (!json.is_array() || json.size() != 2) {
    throw MachineError(name + " must be a pair: what it is, and where that comes from.");
  }
  return {&json[0], text_of(json[1], "the source of " + name)};
}

DType type_of(const Json& json, const std::string& name) {
  const std::string word = text_of(json, name);
  for (int i = 0; i < kDTypeCount; ++i) {
    if (word == numeric::name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  throw MachineError(name + " is \"" + word + "\"; that is no type.");
}

std::vector<DType> types_of(const Json& entry, const char* name, const std::string& of) {
  std::vector<DType> types;
  for (const Json& type : member(entry, name, of)) types.push_back(type_of(type, of + name));
  return types;
}

MmaClocks mma_of(const Json& json, std::size_t number) {
  const std::string of = "mma_sync[" + std::to_string(number) + "]: ";
  const std::string shape = text_of(member(json, "mma", of), of + "mma");
  MmaClocks entry;
  int read = 0;
  if (std::sscanf(shape.c_str(), "m%dn%dk%d%n", &entry.m, &entry.n, &entry.k, &read) != 3 ||
      read != static_cast<int>(shape.size())) {
    throw MachineError(of + "mma is \"" + shape + "\"; it must be like \"m16n8k16\".");
  }
  const auto scaled = json.find("scaled");
  entry.scaled = scaled != json.end() && scaled->is_boolean() && scaled->get<bool>();
  entry.types = types_of(json, "types", of);
  entry.sums = types_of(json, "sums", of);
  entry.clocks = number_of(member(json, "clocks", of), of + "clocks");
  entry.latency = number_of(member(json, "latency", of), of + "latency");
  entry.source = text_of(member(json, "source", of), of + "source");
  return entry;
}

// For the numbers or the curves: each of them that is there, and none that nobody knows.
template <class Read>
void read_all(const Json& json, const char* what, const Read& read) {
  if (!json.is_object()) throw MachineError(std::string(what) + " must be an object.");
  for (const auto& [name, value] : json.items()) {
    if (!read(name, value)) {
      throw MachineError(std::string(what) + " has \"" + name + "\", which no machine has.");
    }
  }
}

void read_groups(const Json& json, MachineNumbers& m) {
  const auto [groups, source] = sourced(json, "sm_groups");
  if (!groups->is_array() || groups->empty()) {
    throw MachineError("sm_groups must be the number of SMs of each group.");
  }
  for (const Json& sms : *groups) {
    const double count = number_of(sms, "sm_groups");
    if (!(count >= 1 && count <= m.sms && count == std::floor(count))) {
      throw MachineError("sm_groups has " + in_words(count) + "; it must be whole numbers, 1 to " +
                         std::to_string(m.sms) + ".");
    }
    m.sm_groups.push_back(static_cast<int>(count));
  }
  m.sources["sm_groups"] = source;
}

void read_numbers(const Json& json, MachineNumbers& m) {
  read_all(json, "numbers", [&](const std::string& name, const Json& given) {
    bool known = false;
    for_each_number(m, [&](const NumberRule& rule, double& value) {
      if (name != rule.name) return;
      known = true;
      const auto [number, source] = sourced(given, name);
      value = number_of(*number, name);
      m.sources[name] = source;
    });
    return known;
  });
}

void read_curves(const Json& json, MachineNumbers& m) {
  read_all(json, "curves", [&](const std::string& name, const Json& given) {
    bool known = false;
    for_each_curve(m, [&](const NumberRule& rule, ClockCurve& curve) {
      if (name != rule.name) return;
      known = true;
      const auto [points, source] = sourced(given, name);
      for (const Json& point : *points) {
        if (!point.is_array() || point.size() != 2) {
          throw MachineError(name + " must be pairs of a size and its clocks.");
        }
        const double size = number_of(point[0], name);
        if (!(size >= 1 && size <= 4096)) {
          throw MachineError(name + " has the size " + in_words(size) + "; sizes are 1 to 4096.");
        }
        curve.points.emplace_back(static_cast<int>(size), number_of(point[1], name));
      }
      m.sources[name] = source;
    });
    return known;
  });
}

}  // namespace

std::optional<std::string> machine_fault(const MachineNumbers& machine) {
  std::optional<std::string> fault;
  const auto check = [&](const NumberRule& rule, bool is_there, const auto& judge) {
    if (fault) return;
    const bool has_source = machine.sources.find(rule.name) != machine.sources.end();
    if (!is_there && !has_source) {
      if (rule.is_asked(machine.architecture)) fault = std::string(rule.name) + " is missing.";
    } else if (fault = judge(); !fault && !has_source) {
      fault = std::string(rule.name) + " has no source.";
    }
  };
  for_each_number(machine, [&](const NumberRule& rule, const double& value) {
    check(rule, value != 0, [&] { return value_fault(rule.name, rule, value); });
  });
  for_each_curve(machine, [&](const NumberRule& rule, const ClockCurve& curve) {
    check(rule, !curve.points.empty(), [&] { return curve_fault(rule, curve); });
  });
  const int grouped = std::accumulate(machine.sm_groups.begin(), machine.sm_groups.end(), 0);
  if (!fault && !machine.sm_groups.empty() && grouped != machine.sms) {
    fault = "sm_groups has " + std::to_string(grouped) + " SMs in all; the device has " +
            std::to_string(machine.sms) + ".";
  }
  return fault ? fault : mma_fault(machine);
}

MachineNumbers parse_machine(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw MachineError("it is no JSON object.");
  constexpr int oldest = 70;
  constexpr int newest = 129;
  MachineNumbers m;
  m.name = text_of(member(json, "name", ""), "name");
  m.card = text_of(member(json, "card", ""), "card");
  m.architecture = integer_of(json, "architecture", oldest, newest);
  m.sms = integer_of(json, "sms", 1, 1024);
  if (const auto groups = json.find("sm_groups"); groups != json.end()) read_groups(*groups, m);
  read_numbers(member(json, "numbers", ""), m);
  if (const auto curves = json.find("curves"); curves != json.end()) read_curves(*curves, m);
  std::size_t number = 0;
  for (const Json& entry : member(json, "mma_sync", ""))
    m.mma_sync.push_back(mma_of(entry, number++));
  if (const auto fault = machine_fault(m)) throw MachineError(*fault);
  return m;
}

std::string machine_text(const MachineNumbers& machine) {
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };
  const auto source = [&](const char* name) {
    const auto found = machine.sources.find(name);
    return quoted(found == machine.sources.end() ? "" : found->second);
  };
  std::string text = "{\n  \"name\": " + quoted(machine.name) +
                     ",\n  \"card\": " + quoted(machine.card) +
                     ",\n  \"architecture\": " + std::to_string(machine.architecture) +
                     ",\n  \"sms\": " + std::to_string(machine.sms);
  if (!machine.sm_groups.empty()) {
    text +=
        ",\n  \"sm_groups\": [" + Json(machine.sm_groups).dump() + ", " + source("sm_groups") + "]";
  }
  text += ",\n  \"numbers\": {";
  const char* between = "\n";
  for_each_number(machine, [&](const NumberRule& rule, const double& value) {
    if (machine.sources.find(rule.name) == machine.sources.end()) return;
    text += std::string(between) + "    \"" + rule.name + "\": [" + Json(value).dump() + ", " +
            source(rule.name) + "]";
    between = ",\n";
  });
  text += "\n  },\n  \"curves\": {";
  between = "\n";
  for_each_curve(machine, [&](const NumberRule& rule, const ClockCurve& curve) {
    if (curve.points.empty()) return;
    Json points = Json::array();
    for (const auto& [size, clocks] : curve.points) points.push_back({size, clocks});
    text += std::string(between) + "    \"" + rule.name + "\": [" + points.dump() + ", " +
            source(rule.name) + "]";
    between = ",\n";
  });
  text += "\n  },\n  \"mma_sync\": [";
  between = "\n";
  for (const MmaClocks& entry : machine.mma_sync) {
    nlohmann::ordered_json line;
    line["mma"] = "m" + std::to_string(entry.m) + "n" + std::to_string(entry.n) + "k" +
                  std::to_string(entry.k);
    for (const auto& [name, types] : {std::pair{"types", &entry.types}, {"sums", &entry.sums}}) {
      line[name] = nlohmann::ordered_json::array();
      for (const DType type : *types) line[name].push_back(std::string(numeric::name(type)));
    }
    if (entry.scaled) line["scaled"] = true;
    line["clocks"] = entry.clocks;
    line["latency"] = entry.latency;
    line["source"] = entry.source;
    text += between + ("    " + line.dump());
    between = ",\n";
  }
  return text + "\n  ]\n}\n";
}

const std::vector<MachineNumbers>& known_machines() {
  static const std::vector<MachineNumbers> all = [] {
    std::vector<MachineNumbers> machines;
    for (const char* text : kKnownMachineTexts) machines.push_back(parse_machine(text));
    // The oldest first.
    std::stable_sort(machines.begin(), machines.end(),
                     [](const auto& x, const auto& y) { return x.architecture < y.architecture; });
    return machines;
  }();
  return all;
}

const MachineNumbers* known_machine(std::string_view name) {
  for (const MachineNumbers& machine : known_machines()) {
    if (machine.name == name) return &machine;
  }
  return nullptr;
}

const MachineNumbers* machine_of_card(std::string_view card) {
  // Only letters and digits, in small letters; a blank, as other signs, ends a word, but not
  // between letters and a number: "RTX 5090".
  std::string words = " ";
  for (const char c : card) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      if (std::isdigit(byte) != 0 && words.ends_with("rtx ")) words.pop_back();
      words += static_cast<char>(std::tolower(byte));
    } else if (!words.ends_with(' ')) {
      words += ' ';
    }
  }
  words += ' ';
  for (const MachineNumbers& machine : known_machines()) {
    if (words.find(" " + machine.name + " ") != std::string::npos) return &machine;
  }
  return nullptr;
}

const MachineNumbers& machine_of_architecture(int architecture) {
  constexpr std::pair<int, const char*> known[] = {{120, "rtx5090"}, {103, "b300"}, {100, "b200"},
                                                   {90, "h200"},     {89, "l40s"},  {86, "rtx3090"},
                                                   {80, "a100"},     {75, "t4"},    {70, "v100"}};
  for (const auto& [first, name] : known) {
    if (architecture >= first) return *known_machine(name);
  }
  return *known_machine("v100");
}

}  // namespace warpwright
