// The structs of DLPack (github.com/dmlc/dlpack, versions 0.x and 1.x) that cross the boundary to
// other libraries, as its specification lays them out in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpwright::python::dlpack {

/// Kinds of devices.
inline constexpr std::int32_t cpu = 1;
inline constexpr std::int32_t cuda = 2;
inline constexpr std::int32_t cuda_managed = 13;

/// Kinds of elements.
inline constexpr std::uint8_t code_int = 0;
inline constexpr std::uint8_t code_uint = 1;
inline constexpr std::uint8_t code_float = 2;

struct Device {
  std::int32_t kind;
  std::int32_t index;
};

struct Type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  Type type;
  std::int64_t* shape;
  std::int64_t* strides;  // elements; null: packed
  std::uint64_t byte_offset;
};

/// What a capsule named "dltensor" holds.
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

inline constexpr std::uint64_t flag_read_only = 1;
inline constexpr std::uint64_t flag_padded = 4;  // elements of less than 8 bits have a byte each

/// What a capsule named "dltensor_versioned" holds.
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, shape) == 24);
static_assert(sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80);

/// The functions of a tensor library that need no Python call, in a capsule "dlpack_exchange_api"
/// that its tensor type has as __dlpack_c_exchange_api__ (DLPack 1.3).
struct Exchange {
  Version version;
  Exchange* older;
  int (*allocate)(Tensor*, ManagedVersioned**, void*, void (*)(void*, const char*, const char*));
  int (*lend)(void* object, ManagedVersioned** out);
  int (*adopt)(ManagedVersioned*, void** object);
  int (*view)(void* object, Tensor* out);  // valid until control goes back to Python
  int (*current_stream)(std::int32_t device_kind, std::int32_t index, void** stream);
};

}  // namespace warpwright::python::dlpack
