// `warpwright trace gemm`: the Perfetto file, the picture, and what they say.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "cli/files/tensor_file.h"
#include "cli/pictures/perfetto.h"
#include "cli/pictures/timeline_parts.h"
#include "cli/pictures/timeline_svg.h"
#include "tests/cli/run_cli.h"
#include "warpwright/device/model.h"
#include "warpwright/device/trace_cuda.h"

namespace warpwright::cli {
namespace {

namespace fs = std::filesystem;

// A protobuf message taken apart: what each field number holds, in the order of the bytes.
struct Decoded {
  std::multimap<int, std::uint64_t> numbers;
  std::multimap<int, std::string_view> texts;

  [[nodiscard]] std::uint64_t number(int field, std::uint64_t otherwise = 0) const {
    const auto at = numbers.find(field);
    return at == numbers.end() ? otherwise : at->second;
  }
  [[nodiscard]] std::optional<std::string_view> text(int field) const {
    const auto at = texts.find(field);
    return at == texts.end() ? std::nullopt : std::optional(at->second);
  }
};

bool varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Decodes wire types 0 and 2, which are all that the writer uses.
std::optional<Decoded> decode(std::string_view bytes) {
  Decoded message;
  while (!bytes.empty()) {
    std::uint64_t key = 0;
    std::uint64_t value = 0;
    if (!varint(bytes, key) || !varint(bytes, value)) return std::nullopt;
    const int field = static_cast<int>(key >> 3);
    if ((key & 7) == 0) {
      message.numbers.emplace(field, value);
    } else if ((key & 7) == 2 && value <= bytes.size()) {
      message.texts.emplace(field, bytes.substr(0, value));
      bytes.remove_prefix(value);
    } else {
      return std::nullopt;
    }
  }
  return message;
}

// Tags match, attributes are quoted, no bare < or & (the part of XML that the picture uses).
std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '&') {
      const auto end = text.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "a bare &";
    }
    if (text[at] != '<') {
      ++at;
      continue;
    }
    const auto end = text.find('>', at);
    if (end == std::string_view::npos) return "a tag that does not end";
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string_view::npos) return "< inside a tag";
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "an open attribute";
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (tag.starts_with('/')) {
      if (open.empty() || "/" + open.back() != tag) return "</" + name + "> closes another tag";
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class TraceCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() /
        ("warpwright_trace_" + std::to_string(testing::UnitTest::GetInstance()->random_seed()) +
         "_" + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

// A product of several tiles a CTA, on one CTA a cluster.
model::Trace trace_of(std::int64_t m, std::int64_t n, std::int64_t k, const PlanChoices& choices) {
  const Result<Plan> p =
      plan(packed_problem(m, n, k, DType::bf16, DType::bf16), model_facts(), choices);
  EXPECT_TRUE(p.ok());
  std::vector<std::uint16_t> a(static_cast<std::size_t>(m * k));
  std::vector<std::uint16_t> b(static_cast<std::size_t>(n * k));
  std::vector<std::uint16_t> d(static_cast<std::size_t>(m * n));
  GemmOperands operands;
  operands.a = matrix(a.data(), DType::bf16, m, k);
  operands.b = matrix(b.data(), DType::bf16, n, k);
  operands.d = matrix(d.data(), DType::bf16, m, n);
  model::Trace trace;
  device::ModelOptions how;
  how.mode = model::Mode::timed;
  how.trace = &trace;
  const auto report = device::launch_on_model(*p, operands, how);
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report->clean()) << report->text();
  EXPECT_EQ(trace.fault(), "");
  return trace;
}

struct Span {
  std::string name;
  std::int64_t begin;
  std::int64_t end;
};

std::vector<Span> spans(const model::Trace& trace, const model::TraceTrack& track) {
  std::vector<Span> all;
  std::vector<std::size_t> open;
  for (const model::TraceEvent& e : track.events) {
    if (e.kind == model::TraceEvent::Kind::begin) {
      open.push_back(all.size());
      all.push_back({trace.texts[static_cast<std::size_t>(e.name)], e.time, e.time});
    } else if (e.kind == model::TraceEvent::Kind::end) {
      all[open.back()].end = e.time;
      open.pop_back();
    }
  }
  return all;
}

TEST_F(TraceCommand, WritesAPerfettoTraceThatDecodes) {
  const CliResult r =
      run_cli({"trace", "gemm", "--random", "512", "512", "256", "--out", path("t.pftrace")});
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("nominal"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("ui.perfetto.dev"), std::string::npos) << r.out;

  const std::string bytes = read_text(path("t.pftrace"));
  const auto file = decode(bytes);
  ASSERT_TRUE(file);
  std::map<std::uint64_t, std::string> names;   // interned
  std::map<std::uint64_t, std::string> tracks;  // by uuid
  std::map<std::uint64_t, std::uint64_t> parents;
  std::map<std::uint64_t, std::vector<std::uint64_t>> open;
  std::map<std::uint64_t, std::uint64_t> last;
  std::map<std::string, int> slices;
  ASSERT_EQ(file->texts.size(), file->texts.count(1));
  for (const auto& [field, content] : file->texts) {
    const auto packet = decode(content);
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->number(10), 1U);  // one sequence
    if (const auto interned = packet->text(12)) {
      const auto data = decode(*interned);
      ASSERT_TRUE(data);
      const auto [from, to] = data->texts.equal_range(2);
      for (auto at = from; at != to; ++at) {
        const auto name = decode(at->second);
        ASSERT_TRUE(name);
        names[name->number(1)] = std::string(*name->text(2));
      }
    } else if (const auto descriptor = packet->text(60)) {
      const auto track = decode(*descriptor);
      ASSERT_TRUE(track);
      tracks[track->number(1)] = std::string(track->text(2).value_or("a CTA"));
      if (track->number(5) != 0) {
        parents[track->number(1)] = track->number(5);
        EXPECT_TRUE(tracks.contains(track->number(5))) << "a track before its CTA";
      }
    } else if (const auto content11 = packet->text(11)) {
      const auto event = decode(*content11);
      ASSERT_TRUE(event);
      const std::uint64_t on = event->number(11);
      ASSERT_TRUE(parents.contains(on));
      EXPECT_GE(packet->number(8), last[on]);
      last[on] = packet->number(8);
      if (event->number(9) == 1) {
        ASSERT_TRUE(names.contains(event->number(10)));
        open[on].push_back(event->number(10));
        ++slices[names[event->number(10)]];
      } else if (event->number(9) == 2) {
        ASSERT_FALSE(open[on].empty());
        open[on].pop_back();
      }
    }
  }
  for (const auto& [track, left] : open) EXPECT_TRUE(left.empty()) << tracks[track];
  EXPECT_GT(slices["tile m 0 n 0"], 0);
  EXPECT_GT(slices["tile m 0 n 0, k block 3"], 0);
  EXPECT_GT(slices["consumer 0: tile m 0 n 0, k block 3"], 0);
  EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [](const auto& slice) {
    return slice.first.starts_with("consumer 1: tile ");
  }));
  EXPECT_GT(slices["epilogue chunk 0"], 0);
  EXPECT_GT(slices["wait full[0]"], 0);
  std::vector<std::string> known;
  known.reserve(tracks.size());
  for (const auto& [uuid, name] : tracks) known.push_back(name);
  for (const char* wanted :
       {"producer", "consumer 0", "consumer 1", "tensor core", "copy engine: loads"}) {
    EXPECT_NE(std::find(known.begin(), known.end(), wanted), known.end()) << wanted;
  }
}

TEST_F(TraceCommand, ThePictureIsWellFormedXml) {
  const CliResult r = run_cli({"trace", "gemm", "--random", "384", "512", "256", "--cluster", "2,1",
                               "--svg", path("t.svg")});
  ASSERT_EQ(r.status, 0) << r.err;
  const std::string svg = read_text(path("t.svg"));
  EXPECT_EQ(xml_fault(svg), "");
  for (const char* part : {"nominal time", " kcycle", "producer", "tensor core: consumer 0",
                           "tensor core: consumer 1", "CTA 1", "epilogue", "tile m 0 n 0"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
}

// Boxes of a picture of the grid, by their fill, as (x, y, width, height).
std::vector<std::array<double, 4>> boxes(const std::string& svg) {
  std::vector<std::array<double, 4>> all;
  const std::regex box(
      "<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\" rx=\"2\" "
      "fill=\"#(2f6fb3|1f8a63)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), box), end; at != end; ++at) {
    all.push_back(
        {std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4])});
  }
  return all;
}

// Every family's tiles have their boxes, each tile one, and no box lies on another.
TEST_F(TraceCommand, ThePictureOfTheGridHasEveryTile) {
  const std::vector<std::vector<std::string>> kinds = {
      {"--as", "a100"},
      {"--as", "v100", "--dtype", "f16"},
      {"--as", "t4", "--dtype", "f16"},
      {"--as", "rtx5090", "--schedule", "pingpong"},
      {"--as", "b200"},
      {"--schedule", "pingpong", "--tile-m", "128", "--tile-n", "128"},
      {"--schedule", "cooperative", "--tile-m", "128", "--tile-n", "128"},
      {"--schedule", "multistage"}};
  for (const std::vector<std::string>& kind : kinds) {
    std::vector<std::string> call = {"trace",      "gemm",        "--random", "512",
                                     "512",        "128",         "--sms",    "2",
                                     "--grid-svg", path("g.svg"), "--svg",    path("t.svg")};
    call.insert(call.end(), kind.begin(), kind.end());
    SCOPED_TRACE(kind[0] + " " + kind[1]);
    const CliResult r = run_cli(call);
    ASSERT_EQ(r.status, 0) << r.err;
    const std::string svg = read_text(path("g.svg"));
    EXPECT_EQ(xml_fault(svg), "");
    const auto all = boxes(svg);
    EXPECT_GE(all.size(), 8U);
    EXPECT_NE(svg.find(">" + std::to_string(all.size()) + " tiles in "), std::string::npos);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto apart = [&](std::size_t at) {
          return all[i][at] + all[i][at + 2] <= all[j][at] + 0.2 ||
                 all[j][at] + all[j][at + 2] <= all[i][at] + 0.2;
        };
        EXPECT_TRUE(apart(0) || apart(1)) << "boxes " << i << " and " << j;
      }
    }
    // And in the timeline the role or the engine that multiplies is told.
    EXPECT_NE(read_text(path("t.svg")).find(">multiply</text>"), std::string::npos);
  }
}

// A role that multiplies one block while it loads another: the load is that of the other.
TEST_F(TraceCommand, LoadsAreNamedByTheirOwnBlock) {
  const CliResult r = run_cli({"trace", "gemm", "--random", "256", "256", "512", "--schedule",
                               "multistage", "--sms", "2", "--svg", path("t.svg")});
  ASSERT_EQ(r.status, 0) << r.err;
  const std::string svg = read_text(path("t.svg"));
  const std::regex load(
      "fill=\"#(?:2f6fb3|8fb9e3)\"(?: rx=\"2\")?><title>[^<]*</title></rect>\n"
      "<text[^>]*>([^<]*)</text>");
  std::vector<std::string> named;
  for (std::sregex_iterator at(svg.begin(), svg.end(), load), end; at != end; ++at) {
    named.push_back((*at)[1]);
  }
  ASSERT_GE(named.size(), 8U);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(named[static_cast<std::size_t>(i)].ends_with(std::to_string(i)))
        << "load " << i << " is called " << named[static_cast<std::size_t>(i)];
  }
}

// The kernel that makes the maps of the groups is in the timeline of the product that uses them.
TEST_F(TraceCommand, EveryGridOfALaunchHasItsTracks) {
  const CliResult r =
      run_cli({"trace", "grouped", "--groups", "4", "--tokens", "75,75,0,150", "--n", "512", "--k",
               "64", "--dtype", "e4m3", "--kernel", "grouped_e4m3_bf16_128x128_v_pp_gm", "--svg",
               path("t.svg"), "--out", path("t.pftrace")});
  ASSERT_EQ(r.status, 0) << r.err;
  const std::string svg = read_text(path("t.svg"));
  EXPECT_EQ(xml_fault(svg), "");
  for (const char* part : {"group_maps: CTA 0", "maker of maps", "group 0 map",
                           "grouped_e4m3_bf16_128x128_v_pp_gm: CTA 0", "consumer 1"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_NE(read_text(path("t.pftrace")).find("group_maps: CTA 3"), std::string::npos);
}

TEST_F(TraceCommand, TheSameArgumentsWriteTheSameBytes) {
  for (const char* name : {"a", "b"}) {
    const CliResult r = run_cli({"trace", "gemm", "--random", "200", "136", "128", "--out",
                                 path((std::string(name) + ".pftrace").c_str()), "--svg",
                                 path((std::string(name) + ".svg").c_str())});
    ASSERT_EQ(r.status, 0) << r.err;
  }
  EXPECT_EQ(read_text(path("a.pftrace")), read_text(path("b.pftrace")));
  EXPECT_EQ(read_text(path("a.svg")), read_text(path("b.svg")));
}

TEST_F(TraceCommand, LoadsOfTheNextTileOverlapTheEpilogueOfThisOne) {
  // 16 tiles on the 8 SMs of the model, taken in turns and shared.
  for (const int tile_n : {128, 256}) {
    PlanChoices choices;
    choices.tile_m = 128;
    choices.schedule = tile_n == 128 ? kernel::Schedule::pingpong : kernel::Schedule::cooperative;
    choices.cluster = atom::ClusterShape{1, 1};
    choices.tile_n = tile_n;
    const model::Trace trace = trace_of(512, 4 * tile_n, 512, choices);
    std::map<std::string, std::vector<Span>> tracks;
    for (const model::TraceTrack& t : trace.tracks) {
      if (t.cta == 0) tracks[t.name] = spans(trace, t);
    }
    // The chunks of the first tile's epilogue.
    std::vector<Span> epilogue;
    for (const Span& s : tracks["consumer 0"]) {
      if (s.name.starts_with("tile ") && !epilogue.empty()) break;
      if (s.name.starts_with("epilogue")) epilogue.push_back(s);
    }
    ASSERT_FALSE(epilogue.empty());
    const std::string first_tile = tracks["producer"].front().name.starts_with("tile ")
                                       ? tracks["producer"].front().name
                                       : "tile m 0 n 0";
    int during = 0;
    for (const Span& load : tracks["copy engine: loads"]) {
      const bool overlaps = load.begin < epilogue.back().end && load.end > epilogue.front().begin;
      if (overlaps && !load.name.starts_with(first_tile + ",")) ++during;
    }
    EXPECT_GT(during, 0) << "tile_n " << tile_n;
    // Taken in turns, the other's multiplications too.
    int others = 0;
    for (const Span& mma : tracks["tensor core"]) {
      const bool overlaps = mma.begin < epilogue.back().end && mma.end > epilogue.front().begin;
      if (overlaps && mma.name.starts_with("consumer 1: ")) ++others;
    }
    if (choices.schedule == kernel::Schedule::pingpong) {
      EXPECT_GT(others, 0);
    }
  }
}

TEST(TimelineParts, NamesOfTiles) {
  EXPECT_EQ(tile_of("tile m 1 n 0"), "tile m 1 n 0");
  EXPECT_EQ(tile_of("consumer 0: tile m 1 n 0, k block 3"), "tile m 1 n 0");
  EXPECT_EQ(tile_of("consumer 0: group 3 tile m 1 n 0, k block 3"), "group 3 tile m 1 n 0");
  EXPECT_EQ(tile_of("wait full[0]"), "");
  EXPECT_EQ(tile_of("epilogue chunk 1"), "");
  EXPECT_EQ(issuer_of("consumer 0: tile m 1 n 0"), "consumer 0");
  EXPECT_EQ(issuer_of("tile m 1 n 0"), "");
}

TEST(TimelineParts, TicksAreRoundAndHaveAUnit) {
  const auto texts = [](std::int64_t from, std::int64_t to, bool measured) {
    std::vector<std::string> all;
    for (const Tick& t : round_ticks(from, to, measured)) all.push_back(t.text);
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(0, 11800, false),
            (Texts{"0", "2 kcycles", "4 kcycles", "6 kcycles", "8 kcycles", "10 kcycles"}));
  EXPECT_EQ(texts(120, 1640, false),
            (Texts{"200 cycles", "400 cycles", "600 cycles", "800 cycles", "1000 cycles",
                   "1200 cycles", "1400 cycles", "1600 cycles"}));
  EXPECT_EQ(texts(0, 10000, true).back(), "10 us");
  EXPECT_EQ(texts(0, 10000, false)[1], "1 kcycle");
  EXPECT_EQ(texts(999, 1005, true),
            (Texts{"999 ns", "1000 ns", "1001 ns", "1002 ns", "1003 ns", "1004 ns", "1005 ns"}));
  for (std::int64_t to = 1; to < 1'000'000'000; to = to * 7 / 4 + 1) {
    const std::size_t count = round_ticks(0, to, false).size();
    EXPECT_GE(count, to < 4 ? 2U : 5U) << to;
    EXPECT_LE(count, 11U) << to;
  }
}

TEST_F(TraceCommand, LabelsAreEscaped) {
  model::TraceBuilder b;
  const int track = b.add_track(model::TraceTrack::Kind::role, 0, "a<b & \"c\"");
  b.begin(track, 0, "tile <0> & \"1\"");
  b.end(track, 100000);
  EXPECT_EQ(xml_fault(timeline_svg(b.finish(), {.title = "<title> & more"})), "");
}

TEST_F(TraceCommand, AnEmptyTraceIsAPictureToo) {
  EXPECT_EQ(xml_fault(timeline_svg({}, {.title = "nothing"})), "");
  EXPECT_TRUE(decode(perfetto_bytes({})));
}

TEST_F(TraceCommand, SaysWhatIsWrongWithTheArguments) {
  const CliResult nowhere = run_cli({"trace", "gemm", "--random", "64", "64", "64"});
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_NE(nowhere.err.find("--out"), std::string::npos);
  const CliResult folder = run_cli(
      {"trace", "gemm", "--random", "64", "64", "64", "--out", "/no/such/folder/t.pftrace"});
  EXPECT_EQ(folder.status, 2);
  EXPECT_NE(folder.err.find("/no/such/folder"), std::string::npos);
  // Neither a tensor that is read nor another picture is written over.
  write_tensor(path("a.npy"), {DType::f32, {4, 4}, std::vector<std::byte>(64)});
  for (const char* option : {"--out", "--svg"}) {
    expect_refused(
        {"trace", "gemm", "--a", path("a.npy"), "--b", path("a.npy"), option, path("a.npy")},
        std::string(option) + " " + path("a.npy") + " is the file of --a, which");
  }
  expect_refused(
      {"trace", "gemm", "--random", "8", "8", "8", "--out", path("t"), "--svg", path("t")},
      "is the file of --out, which it would be written over");
  if (!device::built_with_trace()) {
    const CliResult gpu = run_cli({"trace", "gemm", "--random", "64", "64", "64", "--device",
                                   "cuda", "--out", path("t.pftrace")});
    EXPECT_EQ(gpu.status, 2) << gpu.err;
  }
}

}  // namespace
}  // namespace warpwright::cli
