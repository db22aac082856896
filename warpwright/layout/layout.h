// The layout algebra as a whole: the values, the algebra, division, swizzles (tma.h has the boxes
// of TMA copies).
#pragma once

#include "warpwright/layout/algebra.h"
#include "warpwright/layout/division.h"
#include "warpwright/layout/swizzle.h"
#include "warpwright/layout/value.h"
