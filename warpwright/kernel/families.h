// The one list of the families of kernels. What has to do something for each of them goes through
// it: plans, both devices, the tool that deals kernels out to source files, CMake and tests.
#pragma once

// X(Family, family, Config, majors, chunks, prefixes...)
//   Family    its table is kernel::<Family>Rows in kernel/<family>/table.h, and plan/ has
//             <family>_family()
//   Config    what a row of it is, in kernel/<family>/config.h
//   majors    compute capabilities that run its kernels, a number or a regular expression
//   chunks    source files that its kernels are dealt out to, in a build of many
//   prefixes  what its kernels' names begin with
// A plan for a device takes the first family that runs there.
// CMake reads these lines too (cmake/cuda.cmake): one a family.
#define WW_FAMILIES(X)                                       \
  X(Hopper, hopper, GemmConfig, 9, 13, hopper, grouped)      \
  X(Blackwell, blackwell, BlackwellConfig, 10, 4, blackwell) \
  X(Registers, registers, RegisterConfig, (7 | 8 | 9 | 12), 5, registers)

namespace warpwright::kernel {

// For those who only name a table or a configuration.
#define WW_DECLARE(Family, family, Config, ...) \
  struct Family##Rows;                          \
  struct Config;
WW_FAMILIES(WW_DECLARE)
#undef WW_DECLARE

}  // namespace warpwright::kernel
