// Machines in numbers: the known ones, what they say of themselves, and each number that is
// refused.
#include "warpwright/facts/machines.h"
#include "tests/must.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace warpwright {
namespace {

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_machine(text));
  } catch (const MachineError& error) {
    return error.what();
  }
  return "";
}

// The text of a machine with one change.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Machines, TheKnownOnesAreReadAndWrittenAsTheyAre) {
  for (const char* name : {"v100", "t4", "a100", "rtx3090", "l40s", "h100", "h200", "h20", "b200",
                           "b300", "rtx5090"}) {
    const MachineNumbers* const machine = known_machine(name);
    ASSERT_NE(machine, nullptr) << name;
    EXPECT_EQ(machine_fault(*machine), std::nullopt) << name;
    EXPECT_EQ(parse_machine(machine_text(*machine)), *machine) << name;
  }
  EXPECT_EQ(known_machine("h300"), nullptr);
}

TEST(Machines, EverySourceSaysOfWhatKindItIs) {
  for (const MachineNumbers& machine : known_machines()) {
    const auto check = [&](const std::string& name, const std::string& source) {
      bool known = false;
      for (const char* kind : {"measured: ", "data sheet: ", "paper: ", "estimate"}) {
        known = known || source.starts_with(kind);
      }
      EXPECT_TRUE(known) << machine.name << " " << name << ": " << source;
    };
    for (const auto& [name, source] : machine.sources) check(name, source);
    for (const MmaClocks& entry : machine.mma_sync) check("mma_sync", entry.source);
  }
}

// Each number in turn is left out, negative, too large, and none at all.
TEST(Machines, EachNumberIsRefusedByItsName) {
  for (const MachineNumbers& known : known_machines()) {
    for_each_number(known, [&](const NumberRule& rule, const double& value) {
      const std::string name = rule.name;
      const auto fault_of = [&](double wrong, bool has_source) {
        MachineNumbers m = known;
        for_each_number(m, [&](const NumberRule& other, double& number) {
          if (other.name == name) number = wrong;
        });
        if (!has_source) m.sources.erase(name);
        return machine_fault(m).value_or("");
      };
      if (rule.is_asked(known.architecture)) {
        EXPECT_EQ(fault_of(0, false), name + " is missing.");
        EXPECT_NE(value, 0) << known.name << " " << name;
        EXPECT_EQ(fault_of(value, false), name + " has no source.");
      }
      for (const double wrong :
           {-1.0, rule.highest * 1.01, rule.lowest - 1e-9 - rule.lowest / 100,
            std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        EXPECT_TRUE(fault_of(wrong, true).starts_with(name + " is ")) << name << " " << wrong;
      }
    });
    for_each_curve(known, [&](const NumberRule& rule, const ClockCurve& curve) {
      if (!rule.is_asked(known.architecture)) return;
      const auto fault_of = [&](const ClockCurve& wrong, bool has_source) {
        MachineNumbers m = known;
        for_each_curve(m, [&](const NumberRule& other, ClockCurve& c) {
          if (std::string(other.name) == rule.name) c = wrong;
        });
        if (!has_source) m.sources.erase(rule.name);
        return machine_fault(m).value_or("");
      };
      EXPECT_EQ(fault_of({}, false), std::string(rule.name) + " is missing.");
      ClockCurve wrong = curve;
      wrong.points.back().second = -2;
      expect_contains(fault_of(wrong, true), std::string(rule.name) + " at 256 is -2");
      wrong.points.back().second = 1;
      expect_contains(fault_of(wrong, true), "less than a smaller size takes");
      wrong.points.back() = {8, 500};
      expect_contains(fault_of(wrong, true), "ascend");
    });
    for (std::size_t i = 0; i < known.mma_sync.size(); ++i) {
      MachineNumbers m = known;
      m.mma_sync[i].clocks = -8;
      expect_contains(machine_fault(m).value_or(""), "clocks is -8");
      m = known;
      m.mma_sync[i].latency = 1e6;
      expect_contains(machine_fault(m).value_or(""), "latency is 1000000");
    }
  }
}

TEST(Machines, AMissingMmaIsRefused) {
  MachineNumbers m = *known_machine("a100");
  std::erase_if(m.mma_sync, [](const MmaClocks& e) { return e.m == 16 && e.k == 16; });
  EXPECT_EQ(machine_fault(m), "mma_sync m16n8k16 f16 with sums of f32 is missing.");
}

TEST(Machines, TextsThatAreNoMachineAreRefused) {
  const std::string good = machine_text(*known_machine("h200"));
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal("[]"), "it is no JSON object.");
  EXPECT_EQ(refusal(good.substr(0, good.size() / 2)), "it is no JSON object.");
  EXPECT_EQ(refusal("{}"), "name is missing.");
  EXPECT_EQ(refusal(changed(good, "\"sms\": 132", "\"sms\": -132")),
            "sms is -132; it must be a whole number, 1 to 1024.");
  EXPECT_EQ(refusal(changed(good, "\"architecture\": 90", "\"architecture\": 9")),
            "architecture is 9; it must be a whole number, 70 to 129.");
  EXPECT_EQ(refusal(changed(good, "\"l2_hit_clocks\": [263.0", "\"l2_hit_clocks\": [\"263\"")),
            "l2_hit_clocks is \"263\"; it must be a number.");
  EXPECT_EQ(refusal(changed(good, "\"l2_hit_clocks\"", "\"l2_clocks\"")),
            "numbers has \"l2_clocks\", which no machine has.");
  EXPECT_EQ(refusal(changed(good, "\"l2_hit_clocks\": [263.0", "\"l2_hit_clocks\": [-263.0")),
            "l2_hit_clocks is -263; it must be 50 to 2000.");
  EXPECT_EQ(refusal(changed(good, "\"m16n8k16\"", "\"m16n8k\"")),
            "mma_sync[2]: mma is \"m16n8k\"; it must be like \"m16n8k16\".");
  EXPECT_EQ(refusal(changed(good, "\"wgmma_shared_one\"", "\"wgmma\"")),
            "curves has \"wgmma\", which no machine has.");
}

// What was measured or is on data sheets, and what follows from it.
TEST(Machines, KnownFacts) {
  const MachineNumbers& h200 = *known_machine("h200");
  EXPECT_NEAR(wgmma_clocks(h200, 256, false, true), 128, 1);
  EXPECT_NEAR(wgmma_clocks(h200, 16, true, true), 15.1, 0.1);
  EXPECT_NEAR(wgmma_clocks(h200, 96, false, true), (32.1 + 64.2) / 2, 0.01);
  EXPECT_NEAR(tcgen05_clocks(*known_machine("b200"), 128, 256), 128, 1);
  // Operations of all SMs at the boost clock: the data sheets' bf16 with f32 sums, in TFLOP/s.
  const auto tera = [](const char* name, int m, int n, int k, double clocks, double units) {
    const MachineNumbers& machine = *known_machine(name);
    return 2.0 * m * n * k / clocks * units * machine.sms * machine.clock_hz / 1e12;
  };
  const auto by_mma = [&](const char* name) {
    for (const MmaClocks& e : known_machine(name)->mma_sync) {
      if (e.k == 16 && e.sums.back() == DType::f32) return tera(name, 16, 8, 16, e.clocks, 4);
    }
    return 0.0;
  };
  EXPECT_NEAR(by_mma("a100"), 312, 312 * 0.02);
  EXPECT_NEAR(by_mma("rtx5090"), 209.5, 209.5 * 0.02);
  EXPECT_NEAR(by_mma("l40s"), 362, 362 * 0.02);
  EXPECT_NEAR(by_mma("rtx3090"), 71, 71 * 0.02);
  EXPECT_NEAR(by_mma("h100"), 0.63 * 1071, 30);  // the share of wgmma's that was published
  EXPECT_NEAR(tera("h20", 64, 256, 16, wgmma_clocks(*known_machine("h20"), 256, false, true), 1),
              148, 3);
  EXPECT_NEAR(tera("b200", 128, 256, 16, 128, 1), 2250, 2250 * 0.06);
}

// Groups of SMs are optional; where they are said they hold all SMs.
TEST(Machines, GroupsOfSms) {
  const std::string good = machine_text(*known_machine("h200"));
  const std::string groups = "\"sm_groups\": [[18,18,16,16,16,16,16,8,2,2,2,2]";
  EXPECT_EQ(known_machine("h200")->sm_groups.size(), 12U);
  EXPECT_TRUE(known_machine("h20")->sm_groups.empty());
  EXPECT_EQ(refusal(changed(good, groups, "\"sm_groups\": [[18,18]")),
            "sm_groups has 36 SMs in all; the device has 132.");
  EXPECT_EQ(refusal(changed(good, groups, "\"sm_groups\": [[18,-18]")),
            "sm_groups has -18; it must be whole numbers, 1 to 132.");
  EXPECT_EQ(refusal(changed(good, groups, "\"sm_groups\": [7")),
            "sm_groups must be the number of SMs of each group.");
}

// As drivers call them.
TEST(Machines, OfCards) {
  const auto name = [](const char* card) {
    const MachineNumbers* const machine = machine_of_card(card);
    return machine == nullptr ? std::string("none") : machine->name;
  };
  EXPECT_EQ(name("NVIDIA H200"), "h200");
  EXPECT_EQ(name("NVIDIA H20"), "h20");
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(name("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(name("NVIDIA GeForce RTX 5090"), "rtx5090");
  EXPECT_EQ(name("Tesla T4"), "t4");
  EXPECT_EQ(name("Tesla V100-SXM2-16GB"), "v100");
  EXPECT_EQ(name("NVIDIA L40S"), "l40s");
  EXPECT_EQ(name("NVIDIA L40"), "none");
  EXPECT_EQ(name("NVIDIA GH200 480GB"), "none");
}

TEST(Machines, ArchitecturesHaveOne) {
  EXPECT_EQ(machine_of_architecture(90).name, "h200");
  EXPECT_EQ(machine_of_architecture(110).name, "b300");
  EXPECT_EQ(machine_of_architecture(121).name, "rtx5090");
  EXPECT_EQ(machine_of_architecture(80).name, "a100");
  EXPECT_EQ(machine_of_architecture(70).name, "v100");
  // The oldest first, for lists.
  int before = 0;
  for (const MachineNumbers& machine : known_machines()) {
    EXPECT_GE(machine.architecture, before);
    before = machine.architecture;
  }
}

}  // namespace
}  // namespace warpwright
