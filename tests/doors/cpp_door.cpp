// The C++ API behind a pipe, for doors_test.py. A line is a product:
//   plan|run DEVICE FILE name=value ...
// A tensor's value is dtype:offset:rows:columns:row_stride:column_stride:batch:batch_stride, its
// place in FILE's bytes, an offset of -1 is no memory; other values are numbers. Each line is
// answered by "ok KERNEL", and FILE holds the memory afterwards, or by "CODE sentence".
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/run.h"

namespace warpwright::tests {
namespace {

std::vector<std::int64_t> numbers_of(const std::string& text) {
  std::vector<std::int64_t> all;
  std::istringstream in(text);
  for (std::string each; std::getline(in, each, ':');) all.push_back(std::stoll(each));
  return all;
}

class Memory {
 public:
  explicit Memory(const std::string& file) : file_(file) {
    if (file == "-") return;
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> all{std::istreambuf_iterator<char>(in), {}};
    size_ = all.size();
    bytes_ = static_cast<char*>(::operator new(size_, alignment));
    std::copy(all.begin(), all.end(), bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete(bytes_, alignment); }

  [[nodiscard]] void* at(std::int64_t offset) { return offset < 0 ? nullptr : bytes_ + offset; }
  void write() const {
    std::ofstream(file_, std::ios::binary).write(bytes_, static_cast<std::streamsize>(size_));
  }

 private:
  static constexpr std::align_val_t alignment{4096};
  std::string file_;
  char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

MatrixView view_of(const std::string& text, Memory& memory) {
  const auto n = numbers_of(text);
  return {memory.at(n.at(1)),
          static_cast<DType>(n[0]),
          n.at(2),
          n.at(3),
          n.at(4),
          n.at(5),
          n.at(6),
          n.at(7)};
}

GemmOperands operands_of(const std::map<std::string, std::string>& given, Memory& memory) {
  GemmOperands o;
  const auto number = [&](const char* name, double otherwise) {
    const auto at = given.find(name);
    return at == given.end() ? otherwise : std::stod(at->second);
  };
  const auto word = [&]<class Word>(Word& to, const char* name) {
    to = static_cast<Word>(static_cast<int>(number(name, 0)));
  };
  for (const auto& [name, view] : {std::pair{"a", &o.a},
                                   {"b", &o.b},
                                   {"c", &o.c},
                                   {"d", &o.d},
                                   {"scale_a", &o.scale_a},
                                   {"scale_b", &o.scale_b},
                                   {"scale_d", &o.scale_d},
                                   {"bias", &o.bias}}) {
    if (const auto at = given.find(name); at != given.end()) *view = view_of(at->second, memory);
  }
  o.alpha = static_cast<float>(number("alpha", 1));
  o.beta = static_cast<float>(number("beta", 1));
  word(o.scaling, "scaling");
  word(o.accumulation, "accumulation");
  word(o.epilogue.activation, "activation");
  word(o.epilogue.bias, "bias_along");
  o.epilogue.gated = number("gated", 0) != 0;
  o.epilogue.interleaved = number("gated", 0) == 2;
  if (given.count("gate_limit") + given.count("gate_alpha") + given.count("gate_beta") > 0) {
    const GateNumbers own = gate_of(o.epilogue.activation);
    o.epilogue.gate = {static_cast<float>(number("gate_alpha", own.alpha)),
                       static_cast<float>(number("gate_beta", own.beta)),
                       static_cast<float>(number("gate_limit", own.limit))};
  }
  if (const auto at = given.find("offsets"); at != given.end()) {
    const auto n = numbers_of(at->second);
    o.groups = Groups{memory.at(n.at(1)), static_cast<OffsetType>(n[0])};
    word(o.groups->expected_lengths, "expected_lengths");
    o.groups->expected_zipf = static_cast<float>(number("expected_zipf", 0));
  }
  if (const auto at = given.find("int4"); at != given.end()) {
    const auto n = numbers_of(at->second);
    PackedWeights& packed = o.packed.emplace();
    packed.format = {static_cast<Int4Encoding>(n.at(5)), static_cast<int>(n.at(4)),
                     static_cast<DType>(n.at(6)), static_cast<ZeroPoints>(n.at(7))};
    word(packed.sums, "sums");
    o.b = matrix(static_cast<char*>(memory.at(n[0])) + packed::kHeaderBytes, DType::s4, n.at(2),
                 n.at(3));
    o.b.batch = n.at(1);
    o.b.batch_stride = n[1] > 1 ? n[2] * n[3] : 0;
  }
  return o;
}

std::string answer(const std::string& line) {
  std::istringstream in(line);
  std::string verb, device, file;
  in >> verb >> device >> file;
  std::map<std::string, std::string> given;
  for (std::string each; in >> each;) {
    given.emplace(each.substr(0, each.find('=')), each.substr(each.find('=') + 1));
  }
  Memory memory(file);
  const GemmOperands operands = operands_of(given, memory);
  const auto told = [](const Refusal& refusal) {
    return std::string(name(refusal.code)) + " " + refusal.reason;
  };
  const auto on = device_named(device);
  if (!on) return told(on.refusal());
  const auto plan = run_plan(operands, on->facts, {});
  if (!plan) return told(plan.refusal());
  if (verb == "run") {
    if (const auto refused = run(*plan, operands, {})) return told(*refused);
    memory.write();
  }
  return "ok " + plan->kernel;
}

}  // namespace
}  // namespace warpwright::tests

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << warpwright::tests::answer(line) << std::endl;
    } catch (const std::exception& failed) {
      std::cout << "failed " << failed.what() << std::endl;
    }
  }
  return 0;
}
