// The list of the lessons. One source: their headers are read once.

#include "lessons/01_layout.h"
#include "lessons/02_tma_copy.h"
#include "lessons/03_first_phase.h"
#include "lessons/04_ring.h"
#include "lessons/05_quad_pairs.h"
#include "lessons/06_ampere_stages.h"
#include "lessons/07_wgmma_in_flight.h"
#include "lessons/08_warp_specialised.h"
#include "lessons/09_ping_pong.h"
#include "lessons/10_multicast.h"
#include "lessons/11_pair_umma.h"
#include "lessons/12_launch_control.h"
#include "lessons/13_int4_scales.h"
#include "lessons/14_grouped_maps.h"
#include "lessons/15_no_producer.h"

namespace lessons {

const std::vector<Lesson>& all() {
  static const std::vector<Lesson> list{
      layouts::lesson,     tma_copy::lesson,     first_phase::lesson, ring::lesson,
      quad_pairs::lesson,  ampere::lesson,       in_flight::lesson,   warp_specialised::lesson,
      ping_pong::lesson,   multicast::lesson,    pair_umma::lesson,   launch_control::lesson,
      int4_scales::lesson, grouped_maps::lesson, no_producer::lesson,
  };
  return list;
}

}  // namespace lessons
