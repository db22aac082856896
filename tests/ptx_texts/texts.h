// Small PTX texts, run on the model.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "warpwright/model/machine.h"
#include "warpwright/ptx/kernel.h"

namespace warpwright::tests {

inline const std::string kHead = ".version 9.0\n.target sm_90a\n.address_size 64\n";

/// An entry `k` of a pointer and two words, and its body.
inline std::string entry(const std::string& body) {
  return kHead +
         ".extern .shared .align 1024 .b8 sm[];\n"
         ".visible .entry k(.param .u64 out, .param .u32 n, .param .u64 in)\n{\n"
         ".reg .b64 %o, %i, %x<9>;\n.reg .b32 %n, %r<20>;\n.reg .f32 %f<20>;\n.reg .pred %p<9>;\n"
         ".reg .b16 %h<9>;\n"
         "ld.param.u64 %o, [out];\nld.param.u32 %n, [n];\nld.param.u64 %i, [in];\n" +
         body + "\nret;\n}\n";
}

/// The line of the text that the body above begins on.
inline constexpr int kFirstLine = 15;

struct Ran {
  model::Report report;
  std::vector<std::uint32_t> out;
  std::uint64_t instructions = 0;
};

/// Runs it with a buffer of `words` words of zeros for `out`, and the numbers for `in`.
inline Ran run(const std::string& text, int threads, int words, std::uint32_t n = 0,
               std::vector<std::uint32_t> in = {}, int shared = 0,
               model::Mode mode = model::Mode::eager, int ctas = 1, std::uint64_t seed = 1) {
  ptx::Kernel kernel(text, "k.ptx", "k");
  Ran ran;
  ran.out.resize(static_cast<std::size_t>(words));
  if (in.empty()) in.resize(1);
  alignas(128) struct {
    std::uint64_t out;
    std::uint32_t n;
    std::uint64_t in;
  } params = {reinterpret_cast<std::uintptr_t>(ran.out.data()), n,
              reinterpret_cast<std::uintptr_t>(in.data())};
  ptx::Launch launch;
  launch.grid[0] = ctas;
  launch.block[0] = threads;
  launch.dynamic_bytes = shared;
  std::vector<model::Allocation> allocations = {
      {ran.out.data(), words * 4, "out"},
      {in.data(), static_cast<std::int64_t>(in.size() * 4), "in", false}};
  kernel.add_variables(allocations);
  model::Options options;
  options.mode = mode;
  options.seed = seed;
  ran.report =
      model::run(kernel.shape(launch), options, allocations,
                 kernel.body(reinterpret_cast<const std::byte*>(&params), launch, allocations));
  ran.instructions = kernel.executed();
  return ran;
}

/// The finding of that code, as a text; empty where there is none.
inline std::string finding(const model::Report& report, const std::string& code) {
  for (const model::Finding& f : report.findings) {
    if (model::code(f.check) == code) {
      return std::string(f.site.file) + ":" + std::to_string(f.site.line) + " " + f.sentence;
    }
  }
  return {};
}

}  // namespace warpwright::tests
