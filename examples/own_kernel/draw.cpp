// The kernel's run on the machine model as a picture: who waits for whom, by the clock of the
// model.
//
//   own_kernel_draw FILE.svg
#include <cstdio>
#include <fstream>

#include <warpwright/pictures/compare_svg.h>

#include "layer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "own_kernel_draw FILE.svg\n");
    return 2;
  }
  warpwright::model::testing::Recording recording;
  const auto outcome = own::Layer(64, 64, 512).run(1, &recording);
  if (!outcome.clean()) {
    std::fprintf(stderr, "%s", outcome.text().c_str());
    return 1;
  }
  std::ofstream file(argv[1]);
  file << warpwright::pictures::compare_svg("LinearRelu, Y[64,64] = relu(X[64,512] W^T + bias)",
                                            {{"CTA 0", &recording.trace}});
  std::printf("%s: %lld events\n", argv[1], static_cast<long long>(recording.trace.event_count()));
  return file.flush() ? 0 : 1;
}
