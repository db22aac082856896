#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "cli/app.h"

int main(int argc, char** argv) {
  try {
    return warpwright::cli::run_app(std::vector<std::string>(argv + 1, argv + argc), std::cout,
                                    std::cerr);
  } catch (const std::exception& unexpected) {
    std::cerr << "warpwright failed, which is a fault of its own: " << unexpected.what() << "\n";
    return 70;
  }
}
