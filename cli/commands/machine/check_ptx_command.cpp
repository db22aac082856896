#include "cli/commands/machine/check_ptx_command.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "cli/compute/words.h"
#include "cli/files/tensor_file.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/simulation/ptx_subject.h"

namespace warpwright::cli {
namespace {

using device::PtxArgument;
using device::PtxBuffer;
using device::PtxLaunch;

constexpr std::int64_t most_bytes = std::int64_t{1} << 31;

[[noreturn]] void refuse_word(const char* option, const std::string& word,
                              const std::string& rule) {
  throw InputError(std::string(option) + " has \"" + word + "\", and takes " + as_rule(rule) + ".");
}

std::int64_t number_in(const char* option, const std::string& text, std::int64_t least,
                       std::int64_t most) {
  const std::string fault = integer_fault(text, least, most);
  if (fault.empty()) return std::strtoll(text.c_str(), nullptr, 0);
  throw InputError(std::string(option) + ": " + unmarked(fault) + ".");
}

DType type_in(const char* option, const std::string& word) {
  const auto type = numeric::parse_dtype(word);
  if (type && numeric::bits(*type) % 8 == 0) return *type;
  refuse_word(option, word, "a type of whole bytes, as bf16, fp16, f32, e4m3, s32 or u8");
}

// "64x128", the innermost extent last.
std::vector<std::int64_t> extents_in(const char* option, const std::string& word) {
  std::vector<std::int64_t> extents;
  for (const std::string& part : split(word, 'x')) {
    extents.push_back(number_in(option, part, 1, most_bytes));
  }
  return extents;
}

std::vector<std::byte> bytes_in(const std::string& path) {
  if (path.ends_with(".npy") || path.find(".safetensors") != std::string::npos) {
    return read_tensor(path).bytes;
  }
  const InputFile file(path);
  return file.read(0, file.size());
}

void fill_random(std::vector<std::byte>& bytes, std::optional<DType> type, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  if (!type) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xffU);
    return;
  }
  const auto each = static_cast<std::size_t>(numeric::bits(*type)) / 8;
  const bool is_integer = numeric::format_of(*type).exponent_bits == 0;
  for (std::size_t at = 0; at + each <= bytes.size(); at += each) {
    const auto drawn = static_cast<double>(random() >> 11) * 0x1p-52 - 1;  // -1 to 1
    const std::uint64_t code =
        is_integer ? static_cast<std::uint64_t>(static_cast<std::int64_t>(drawn * 100))
                   : numeric::from_double(*type, drawn);
    std::memcpy(bytes.data() + at, &code, each);
  }
}

// NAME=SIZE[,FILL][,in]
PtxBuffer buffer_of(const char* option, const std::string& text) {
  const std::size_t equals = text.find('=');
  PtxBuffer buffer;
  buffer.name = text.substr(0, equals);
  const std::vector<std::string> words = split(text.substr(equals + 1), ',');
  std::optional<DType> type;
  const auto from_file = [&](const std::string& word) {
    if (!word.starts_with("file:")) return false;
    buffer.bytes = bytes_in(word.substr(5));
    return true;
  };
  if (!from_file(words[0])) {
    const std::vector<std::string> size = split(words[0], ':');
    std::int64_t bytes = 1;
    if (size.size() > 2) refuse_word(option, words[0], "a number of bytes, or EXTENTS:TYPE");
    for (const std::int64_t e : extents_in(option, size[0])) {
      bytes = std::min(bytes * e, most_bytes + 1);
    }
    if (size.size() == 2) type = type_in(option, size[1]);
    if (type) bytes *= numeric::bits(*type) / 8;
    if (bytes > most_bytes) refuse_word(option, words[0], "2 GiB at most");
    buffer.bytes.assign(static_cast<std::size_t>(bytes), std::byte{0xff});
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t bytes = buffer.bytes.size();
    if (word == "zeros") {
      std::ranges::fill(buffer.bytes, std::byte{0});
    } else if (word.starts_with("random:")) {
      fill_random(buffer.bytes, type,
                  static_cast<std::uint64_t>(number_in(option, word.substr(7), 0, INT64_MAX)));
    } else if (word == "in") {
      buffer.writable = false;
    } else if (from_file(word)) {
      if (buffer.bytes.size() > bytes)
        refuse_word(option, word, "a file no larger than the buffer");
      buffer.bytes.resize(bytes, std::byte{0xff});
    } else {
      refuse_word(option, word, "zeros, random:SEED, file:PATH, or in for what is only read");
    }
  }
  return buffer;
}

// The buffers that the options name.
class Buffers {
 public:
  explicit Buffers(PtxLaunch& launch) : all_(launch.buffers) {}

  std::size_t add(const char* option, const std::string& text) {
    PtxBuffer buffer = buffer_of(option, text);
    const bool is_new = std::ranges::find(all_, buffer.name, &PtxBuffer::name) == all_.end();
    if (!is_new) refuse_word(option, buffer.name, "a name that no other buffer has");
    all_.push_back(std::move(buffer));
    return all_.size() - 1;
  }
  std::size_t find(const char* option, const std::string& name) const {
    const auto it = std::ranges::find(all_, name, &PtxBuffer::name);
    if (it == all_.end()) {
      refuse_word(option, name,
                  all_.empty() ? "the name of a buffer of --buffer or --arg"
                               : "the name of a buffer, as " + all_.front().name);
    }
    return static_cast<std::size_t>(it - all_.begin());
  }

 private:
  std::vector<PtxBuffer>& all_;
};

// "u32:5"; nothing where the word is of no type.
std::optional<std::vector<std::byte>> scalar_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  const std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (word == "bytes") return bytes_in(value);
  const auto type = device::PtxNumber::parse(word);
  if (!type) return std::nullopt;
  if (type->floats) {
    if (!number_fault(value).empty()) refuse_word("--arg", text, "a number behind " + word);
    return type->bytes(std::strtod(value.c_str(), nullptr));
  }
  const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(type->most(), INT64_MAX));
  return type->bytes(static_cast<std::uint64_t>(number_in("--arg", value, type->least(), most)));
}

// map:NAME,TYPE,EXTENTS,box:EXTENTS[,swizzle:N][,pitch:BYTES][,struct:BYTES]; extents innermost
// last, as the buffers' are.
PtxArgument map_of(const std::string& text, const Buffers& buffers) {
  constexpr const char* option = "--arg";
  const std::vector<std::string> words = split(text.substr(4), ',');
  if (words.size() < 4) {
    refuse_word(option, text,
                "map:NAME,TYPE,EXTENTS,box:EXTENTS[,swizzle:128][,pitch:BYTES][,struct:BYTES]");
  }
  PtxArgument argument;
  argument.buffer = buffers.find(option, words[0]);
  device::PtxMap map;
  map.type = type_in(option, words[1]);
  map.element_bits = numeric::bits(*map.type);
  map.extents = extents_in(option, words[2]);
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::size_t colon = words[i].find(':');
    const std::string key = words[i].substr(0, colon);
    const std::string value = colon == std::string::npos ? "" : words[i].substr(colon + 1);
    if (key == "box") {
      map.box = extents_in(option, value);
    } else if (key == "swizzle") {
      map.swizzle = value == "none" ? 0 : static_cast<int>(number_in(option, value, 0, 128));
    } else if (key == "pitch") {
      map.pitches = extents_in(option, value);
    } else if (key == "struct") {
      const auto [least, most] = device::ptx_struct_bytes;
      argument.struct_bytes = static_cast<std::size_t>(number_in(option, value, least, most));
    } else {
      refuse_word(option, words[i],
                  "box:EXTENTS, swizzle:none, 32, 64 or 128, pitch:BYTES, or struct:BYTES");
    }
  }
  if (const auto rule = map.fault()) refuse_word(option, text, *rule);
  argument.map = map.fields();
  return argument;
}

PtxArgument argument_of(const std::string& text, Buffers& buffers) {
  if (text.starts_with("map:")) return map_of(text, buffers);
  PtxArgument argument;
  if (text.find('=') != std::string::npos) {
    argument.buffer = buffers.add("--arg", text);
    return argument;
  }
  if (const auto scalar = scalar_of(text)) {
    argument.value = *scalar;
    return argument;
  }
  const std::size_t plus = text.find('+');
  argument.buffer = buffers.find("--arg", text.substr(0, plus));
  if (plus != std::string::npos) {
    argument.offset = number_in("--arg", text.substr(plus + 1), 0, most_bytes);
  }
  return argument;
}

// What a text, or a launch of it, is refused with.
[[noreturn]] void refuse(const std::string& path, const ptx::Fault& fault) {
  throw InputError((fault.line > 0 ? path + ", line " + std::to_string(fault.line) + ": " : "") +
                   std::string(fault.what()) + ".");
}

PtxLaunch launch_of(const CheckPtxOptions& o, const std::string& text) {
  PtxLaunch launch{
      .kernel = ptx::Kernel(text, std::filesystem::path(o.file).filename().string(), o.entry)};
  for (std::size_t i = 0; i < o.grid.size(); ++i) launch.launch.grid[i] = o.grid[i];
  for (std::size_t i = 0; i < o.block.size(); ++i) launch.launch.block[i] = o.block[i];
  launch.launch.cluster = o.cluster;
  launch.launch.dynamic_bytes = o.smem;
  launch.launch.registers = o.registers;
  launch.sms = std::max(o.sms, o.cluster);
  Buffers buffers(launch);
  for (const std::string& each : o.buffers) {
    if (each.find('=') == std::string::npos) refuse_word("--buffer", each, "NAME=SIZE[,FILL][,in]");
    buffers.add("--buffer", each);
  }
  // What declares a buffer comes first: maps may name it.
  for (const std::string& each : o.arguments)
    launch.arguments.push_back(argument_of(each, buffers));
  for (const std::string& each : o.expected) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos) refuse_word("--expect", each, "NAME=FILE");
    PtxBuffer& buffer = launch.buffers[buffers.find("--expect", each.substr(0, equals))];
    buffer.expected = bytes_in(each.substr(equals + 1));
    if (buffer.expected->size() > buffer.bytes.size()) {
      refuse_word(
          "--expect", each,
          "a file no larger than the buffer, " + std::to_string(buffer.bytes.size()) + " bytes");
    }
  }
  return launch;
}

auto within(const device::PtxRange& range) {
  return whole(range.least, range.most);
}

}  // namespace

void add_ptx_options(CLI::App& app, CheckPtxOptions& o) {
  app.add_option("FILE", o.file, "the text, as nvcc -ptx writes it")
      ->required()
      ->option_text("FILE");
  const Values add(app);
  add("--entry", o.entry, "NAME", "the kernel's name in it (default: the only one)");
  add("--grid", o.grid, "X[,Y[,Z]]", "CTAs of the grid (default 1)")
      ->delimiter(',')
      ->expected(1, 3);
  add("--block", o.block, "X[,Y[,Z]]", "threads of a CTA")
      ->delimiter(',')
      ->expected(1, 3)
      ->required();
  add("--cluster", o.cluster, "N", "CTAs of a cluster, along x (default 1)",
      within(device::ptx_clusters));
  add("--smem", o.smem, "BYTES", "bytes of dynamic shared memory (default 0)",
      within(device::ptx_dynamic_bytes));
  add("--registers", o.registers, "N",
      "registers of a thread when it begins, as ptxas -v says: setmaxnreg counts from there "
      "(default: what the text's bounds leave)",
      within(device::ptx_registers));
  add("--sms", o.sms, "N", "SMs of the model (default 8)", within(device::ptx_sms));
  add("--buffer", o.buffers, "BUFFER",
      "global memory, NAME=SIZE[,FILL][,in]: SIZE is bytes, EXTENTS:TYPE as 64x128:bf16, or "
      "file:PATH; FILL zeros, random:SEED or file:PATH; in: only read")
      ->allow_extra_args(false);
  add("--arg", o.arguments, "ARG",
      "the next parameter: u32:5, f32:0.5, ...; NAME of a buffer, or NAME+BYTES; a buffer itself; "
      "bytes:FILE; map:NAME,TYPE,EXTENTS,box:EXTENTS[,swizzle:128][,pitch:BYTES][,struct:BYTES]")
      ->allow_extra_args(false);
  add("--expect", o.expected, "EXPECTED", "NAME=FILE: what a buffer must hold behind the run")
      ->allow_extra_args(false);
}

int check_ptx_command(const CheckPtxOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.check.json, [&] {
    const device::CheckOptions options = check_options(o.run, o.check);
    const InputFile file(o.file);
    const std::vector<std::byte> bytes = file.read(0, file.size());
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::optional<PtxLaunch> launch;
    std::unique_ptr<device::Subject> subject;
    try {
      launch.emplace(launch_of(o, text));
      subject = device::ptx_subject(*launch);
    } catch (const ptx::Fault& fault) {
      refuse(o.file, fault);
    }
    return check_subject({.subject = *subject,
                          .plan = launch->kernel.entry(),
                          .untried = [](const auto& /*ran*/) { return Untried{}; }},
                         options, o.check, out, err);
  });
}

}  // namespace warpwright::cli
