#pragma once

#include "kernels/common/exported.h"

// Referencing this symbol keeps the operator library among a program's loaded libraries: linkers drop
// libraries that nothing refers to, and with it every operator that TorchScript archives call.
extern "C" LAMPLIGHTER_EXPORTED int lamplighter_ops_anchor();
