// For libraries with the C++ library inside. Its std::random_device calls arc4random where glibc
// has it, from 2.36 on; so such a library would load nowhere else, though it asks for no random
// number. With this one in its place it loads where the rest of it does.
#include <sys/random.h>

#include <cerrno>
#include <cstdint>

extern "C" std::uint32_t arc4random() noexcept;
extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
    if (errno != EINTR) __builtin_trap();  // as arc4random, which has no way to fail
  }
  return number;
}
