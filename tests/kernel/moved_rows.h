// Rows of tokens that a kernel moves, beside what they must become.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/kernel/token_rows.h"
#include "tests/must.h"
#include "warpwright/device/quantise.h"

namespace warpwright::tests {

// Codes and scales of the tokens on the host.
struct Codes {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  int blocks;
};
inline Codes quantised(const Shape& s, Bytes& x, kernel::RowForm form, int block) {
  Codes q;
  q.blocks = form == kernel::RowForm::blocks ? (s.k + block - 1) / block : 1;
  q.codes.resize(index(s.tokens) * index(s.k));
  q.scales.resize(index(s.tokens * q.blocks));
  Quantisation what;
  what.x = matrix(x.data(), s.type, s.tokens, s.k);
  what.x.row_stride = x.pitch / 2;
  what.codes = matrix(q.codes.data(), DType::e4m3, s.tokens, s.k);
  what.scales = matrix(q.scales.data(), DType::f32, s.tokens, q.blocks);
  what.scaling = form == kernel::RowForm::blocks ? Scaling::blockwise : Scaling::row_column;
  must_do(quantise_on_host(what));
  return q;
}

// The rows that the result must have, for each the token, or -1 for one that stays as it is.
struct Expected {
  int rows;
  std::vector<int> token_of;
};
inline Expected result_of(const Routing* r, int tokens) {
  Expected to{r == nullptr ? tokens : static_cast<int>(r->tokens * r->top_k), {}};
  for (int i = 0; i < to.rows; ++i) {
    if (r == nullptr) {
      to.token_of.push_back(i);
    } else {
      const int slot = i < r->offsets.back() ? r->slots[index(i)] : -1;
      to.token_of.push_back(slot < 0 ? -1 : slot / r->top_k);
    }
  }
  return to;
}

// Codes have scales of blocks or of rows.
inline bool is_codes_of_blocks(kernel::RowForm form, std::uint64_t seed) {
  return form == kernel::RowForm::codes && seed % 2 == 0;
}

// Elements with a scale.
inline int block_of(std::uint64_t seed) {
  return 128 >> seed / 2 % 3;
}

// Rows of tokens, made by a launch, and what is wrong with them.
class Moved {
 public:
  Moved(const Shape& s, kernel::RowForm form, Routing* r, std::uint64_t seed)
      : s_(s),
        form_(form),
        x_(tokens_of(s, seed)),
        result_(result_of(r, s.tokens)),
        row_bytes_(form == kernel::RowForm::copy ? 2 * s.k : s.k),
        x_row_bytes_(form == kernel::RowForm::codes ? s.k : 2 * s.k),
        to_(result_.rows, row_bytes_, s.to_extra, s.to_shift),
        blocks_(form == kernel::RowForm::blocks || is_codes_of_blocks(form, seed)
                    ? (s.k + block_of(seed) - 1) / block_of(seed)
                    : 1),
        scales_(index(result_.rows * blocks_), -1.0F) {
    p_.x = x_.data();
    p_.x_pitch = x_.pitch;
    p_.to = to_.data();
    p_.to_pitch = to_.pitch;
    p_.scales = form == kernel::RowForm::copy ? nullptr : scales_.data();
    // Side by side are the rows' scales, as products of groups read them.
    p_.scale_pitch = 1;
    p_.scale_step = result_.rows;
    if (r != nullptr) {
      p_.rows = r->rows.data();
      p_.top_k = r->top_k;
      memory_.push_back({r->rows.data(), std::int64_t{4} * r->tokens * r->top_k, "rows", false});
    }
    p_.tokens = s.tokens;
    p_.k = s.k;
    p_.type = s.type;
    p_.form = form;
    p_.block = block_of(seed);
    p_.sharers = 1 << seed % 4;            // of rows with one scale; others have pieces
    if (form == kernel::RowForm::codes) {  // any bytes are
      given_ = {.codes = {}, .scales = {}, .blocks = blocks_};
      for (int i = 0; i < s.tokens * blocks_; ++i) {
        given_.scales.push_back(static_cast<float>(i) + 0.25F);
      }
      p_.type = DType::e4m3;
      p_.x_scales = given_.scales.data();
      p_.x_scale_pitch = blocks_;
      p_.x_scale_step = 1;
      p_.scales_blocks = is_codes_of_blocks(form, seed);
      memory_.push_back(
          {given_.scales.data(), std::int64_t{4} * s.tokens * blocks_, "scales of x", false});
    }
    memory_.push_back(x_.memory("x", s.tokens, x_row_bytes_, false));
    memory_.push_back(to_.memory("the rows", result_.rows, row_bytes_, true));
    memory_.push_back(allocation(scales_, "scales"));
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  [[nodiscard]] const kernel::TokenRows& params() const { return p_; }
  [[nodiscard]] const std::vector<model::Allocation>& memory() const { return memory_; }

  // As it is before a launch.
  void poison() {
    std::fill(to_.all.begin(), to_.all.end(), static_cast<unsigned char>(0xcd));
    std::fill(scales_.begin(), scales_.end(), -1.0F);
  }

  // Gives x other elements: what `value` says for a token's element that was x.
  template <class Value>
  void change(const Value& value) {
    for (int t = 0; t < s_.tokens; ++t) {
      for (int i = 0; i < s_.k; ++i) {
        std::uint16_t code = 0;
        std::memcpy(&code, x_.row(t) + 2 * i, 2);
        code = code16(s_.type, value(t, i, float16(s_.type, code)));
        std::memcpy(x_.row(t) + 2 * i, &code, 2);
      }
    }
  }

  std::string fault() {
    const bool as_it_is = form_ == kernel::RowForm::copy || form_ == kernel::RowForm::codes;
    const Codes want = as_it_is ? given_ : quantised(s_, x_, form_, p_.block);
    for (int row = 0; row < result_.rows; ++row) {
      const int token = result_.token_of[index(row)];
      const std::string where = "row " + std::to_string(row) + " of token " + std::to_string(token);
      const auto* const got = to_.row(row);
      if (token < 0) {
        if (std::any_of(got, got + row_bytes_, [](unsigned char c) { return c != 0xcd; })) {
          return where + " is written";
        }
        continue;
      }
      const unsigned char* const bytes =
          as_it_is ? x_.row(token) : want.codes.data() + static_cast<std::ptrdiff_t>(token) * s_.k;
      if (!std::equal(bytes, bytes + row_bytes_, got)) return where + " is wrong";
      if (form_ == kernel::RowForm::copy) continue;
      for (int b = 0; b < blocks_; ++b) {
        if (scales_[index(row + b * result_.rows)] != want.scales[index(token * blocks_ + b)]) {
          return "a scale of " + where + " is wrong";
        }
      }
    }
    return {};
  }

 private:
  Shape s_;
  kernel::RowForm form_;
  Bytes x_;
  Expected result_;
  int row_bytes_;
  int x_row_bytes_;
  Bytes to_;
  int blocks_;
  std::vector<float> scales_;
  Codes given_;  // those of x, where it is codes
  kernel::TokenRows p_;
  std::vector<model::Allocation> memory_;
};

inline constexpr kernel::RowForm forms[] = {kernel::RowForm::copy, kernel::RowForm::blocks,
                                            kernel::RowForm::rows, kernel::RowForm::codes};

inline constexpr Shape shapes[] = {
    {5, 256},
    {9, 512, DType::f16},
    {7, 320, DType::bf16, 0, 16, 0, 0},
    {6, 130, DType::f16, 2, 6, 1, 3},  // no line begins at a multiple of anything
    {8, 2001, DType::bf16, 4, 2, 4, 5},
    {1, 1},
    {11, 8},
};

// (Copies are of 16-bit elements: an address of theirs is a multiple of 2.)
inline Shape legal(Shape s, kernel::RowForm form) {
  if (form == kernel::RowForm::copy) {
    s.to_shift *= 2;
    s.to_extra *= 2;
  }
  return s;
}

}  // namespace warpwright::tests
