// The tables of all families.
#pragma once

#include "warpwright/kernel/blackwell/table.h"
#include "warpwright/kernel/families.h"
#include "warpwright/kernel/hopper/table.h"
#include "warpwright/kernel/registers/table.h"
