#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "cli/app.h"

namespace {

// A standard descriptor that is closed would go to the next file that is opened, a matrix, say, and
// what is printed into that. Instead it is one that cannot be used: opened for the wrong direction.
void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free is this one.
    static_cast<void>(::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_descriptors();
  // A reader who has seen enough (`warpwright explain ... | head -1`) ends the program quietly,
  // also where whoever started it ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    return warpwright::cli::run_app(std::vector<std::string>(argv + 1, argv + argc), std::cout,
                                    std::cerr);
  } catch (const std::exception& unexpected) {
    std::cerr << "warpwright failed, which is a fault of its own: " << unexpected.what() << "\n";
    return 70;
  }
}
