// What the packers of weights share (packing.cpp, fp4.cpp).
#pragma once

#include <cctype>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "python/src/handles.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/weights/source.h"

namespace warpwright::python {

/// A sentence of the command line, whose options are arguments here: "--zero-points" is
/// "zero_points=".
inline std::string as_arguments(const std::string& sentence) {
  std::string text;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    if (sentence.compare(i, 2, "--") != 0) {
      text += sentence[i];
      continue;
    }
    for (i += 2; i < sentence.size() && (std::islower(sentence[i]) != 0 || sentence[i] == '-');
         ++i) {
      text += sentence[i] == '-' ? '_' : sentence[i];
    }
    if (text.ends_with("from")) text.replace(text.size() - 4, 4, "layout");
    text += '=';
    --i;
  }
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// The code of that name; for what only the command line refuses, which mostly is a file,
/// file_error.
inline RefusalCode code_of(const char* name) {
  for (int i = 0; i < static_cast<int>(RefusalCode::file_error); ++i) {
    const auto code = static_cast<RefusalCode>(i);
    if (std::strcmp(warpwright::name(code), name) == 0) return code;
  }
  return RefusalCode::file_error;
}

template <class Body>
PyObject* function(const Body& body) noexcept {
  try {
    return body();
  } catch (const cli::InputError& error) {
    try {
      Sentence said = error.sentence();
      said.reason = error.what();
      for (std::string* part : {&said.reason, &said.rule, &said.nearest}) {
        *part = as_arguments(*part);
      }
      throw Refused{{code_of(error.code()), std::move(said)}};
    } catch (...) {
      set_error();
    }
    return nullptr;
  } catch (...) {
    set_error();
    return nullptr;
  }
}

template <class T>
T taken(Result<T> result) {
  if (!result) throw Refused{result.refusal()};
  return std::move(*result);
}

inline bool is_given(PyObject* object) {
  return object != nullptr && object != Py_None;
}

/// The form that is called `encoding` (or by its format's word, for the usual tokens), of floats or
/// of whole numbers; null for a null word.
inline const packed::WeightForm* form_named(const char* word, bool of_floats) {
  if (word == nullptr) return nullptr;
  const packed::WeightFormat* const format = packed::weight_format(word);
  std::vector<std::string> legal;
  for (const packed::WeightForm& form : packed::weight_forms) {
    if (packed::has_float_codes(packed_format(form)) != of_floats) continue;
    const bool is_usual = of_floats && &packed::format_of(form) == format;
    if (is_usual || std::strcmp(form.word, word) == 0) return &form;
    legal.push_back("\"" + std::string(form.word) + "\"");
  }
  std::string words;
  for (const std::string& each : legal) {
    words += (words.empty() ? "" : &each == &legal.back() ? " or " : ", ") + each;
  }
  throw Refused{
      refuse(RefusalCode::bad_value, "encoding is \"", word, "\"; ", as_rule("it is ", words))};
}

/// Bytes as an Array of the host.
inline PyObject* array_of(std::span<const std::byte> bytes, DType type,
                          std::vector<std::int64_t> shape) {
  ArrayHandle array;
  array.memory = memory_on("model", static_cast<std::int64_t>(bytes.size())).first;
  std::memcpy(array.memory.get(), bytes.data(), bytes.size());
  array.type = type;
  array.shape = std::move(shape);
  return new_array(std::move(array));
}
inline PyObject* array_of(std::span<const std::byte> bytes) {
  return array_of(bytes, DType::u8, {static_cast<std::int64_t>(bytes.size())});
}

inline void require_host(const Tensor& t) {
  if (t.device == run_on_model) return;
  throw Refused{refuse(RefusalCode::wrong_device, as_tensor(t.name), " lies in ",
                       place_name(t.device),
                       ", and this works in host memory: ", as_rule("give it a copy there"))};
}

/// A matrix or a batch of them of a checkpoint.
inline MatrixView checkpoint_view(Reader& reader, PyObject* object, const char* name, int& device) {
  if (!is_given(object)) return {};
  Tensor t = reader.read(object, name);
  if (t.offset == OffsetType::int32) t.type = DType::s32;
  if (device == run_nowhere) device = t.device;
  if (device != t.device) {
    throw Refused{refuse(RefusalCode::wrong_device, as_tensor(name), " lies in ",
                         place_name(t.device), " and the codes in ", place_name(device))};
  }
  if (t.dimensions == 1) {
    t.dimensions = 2;
    t.shape = {1, t.shape[0]};
    t.stride = {t.shape[1], t.stride[0]};
  }
  return matrix_of(t);
}

/// The tensors of a checkpoint, which lie in host memory.
struct NamedCheckpointTensor {
  PyObject* given;
  const char* name;
  MatrixView weights::CheckpointTensors::*to;
};
inline weights::CheckpointTensors checkpoint_tensors(
    Reader& reader, std::initializer_list<NamedCheckpointTensor> all) {
  weights::CheckpointTensors tensors;
  int device = run_nowhere;
  for (const auto& [given, name, to] : all)
    tensors.*to = checkpoint_view(reader, given, name, device);
  if (device < 0) return tensors;
  throw Refused{
      refuse(RefusalCode::wrong_device, "the codes lie in ", place_name(device),
             ", and checkpoints are packed in host memory: ", as_rule("give copies there"))};
}

}  // namespace warpwright::python
