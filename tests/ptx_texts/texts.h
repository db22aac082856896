// Small PTX texts, run on the model.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
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

/// The text with `by` in place of `what`, which it has.
inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

/// The line of the text that the body above begins on.
inline constexpr int kFirstLine = 15;

/// A position in a vector.
constexpr std::size_t index_of(int i) {
  return static_cast<std::size_t>(i);
}

/// Writes the text to the folder that the environment names, under a number of its own, for
/// tests/ptx/legal_texts_test.py.
inline void keep(const std::string& text) {
  const char* const folder = std::getenv("WARPWRIGHT_PTX_TEXTS");
  // A name of a function stands in a section that these texts do not have.
  if (folder == nullptr || text.find("function_name") != std::string::npos) return;
  const std::string name = std::to_string(std::hash<std::string>{}(text)) + ".ptx";
  std::ofstream(std::filesystem::path(folder) / name) << text;
}

struct Ran {
  model::Report report;
  std::vector<std::uint32_t> out;
  std::uint64_t instructions = 0;
};

/// What a kernel is launched with, beside its `words` words of zeros for `out`: the numbers for
/// `in`.
struct Given {
  int threads = 1;
  int words = 0;
  std::uint32_t n = 0;
  std::vector<std::uint32_t> in = {};
  int shared = 0;
  model::Mode mode = model::Mode::eager;
  int ctas = 1;
  std::uint64_t seed = 1;
  int cluster = 1;
  std::optional<model::Mutation> mutation = {};
};

inline Ran run(ptx::Kernel& kernel, Given given) {
  Ran ran;
  ran.out.resize(index_of(given.words));
  if (given.in.empty()) given.in.resize(1);
  alignas(128) struct {
    std::uint64_t out;
    std::uint32_t n;
    std::uint64_t in;
  } params = {reinterpret_cast<std::uintptr_t>(ran.out.data()), given.n,
              reinterpret_cast<std::uintptr_t>(given.in.data())};
  ptx::Launch launch;
  launch.grid[0] = given.ctas;
  launch.cluster = given.cluster;
  launch.block[0] = given.threads;
  launch.dynamic_bytes = given.shared;
  std::vector<model::Allocation> allocations = {
      {ran.out.data(), given.words * 4, "out"},
      {given.in.data(), static_cast<std::int64_t>(given.in.size() * 4), "in", false}};
  kernel.add_variables(allocations);
  model::Options options;
  options.mode = given.mode;
  options.seed = given.seed;
  options.mutation = given.mutation;
  options.count_sites = true;
  const std::uint64_t before = kernel.executed();
  ran.report =
      model::run(kernel.shape(launch), options, allocations,
                 kernel.body(reinterpret_cast<const std::byte*>(&params), launch, allocations));
  ran.instructions = kernel.executed() - before;
  return ran;
}

inline Ran run(const std::string& text, const Given& given) {
  ptx::Kernel kernel(text, "k.ptx", "k");
  Ran ran = run(kernel, given);
  if (ran.report.clean()) keep(text);
  return ran;
}
inline Ran run(const std::string& text, int threads, int words, std::uint32_t n = 0,
               std::vector<std::uint32_t> in = {}, int shared = 0,
               model::Mode mode = model::Mode::eager, int ctas = 1, std::uint64_t seed = 1) {
  return run(text, {threads, words, n, std::move(in), shared, mode, ctas, seed});
}

/// The sentence of a text that is refused before it runs; empty where nothing keeps it.
inline std::string refusal_of(const std::string& text) {
  try {
    ptx::Kernel(text, "k.ptx", "k");
  } catch (const ptx::Fault& f) {
    return f.what();
  }
  return "";
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
