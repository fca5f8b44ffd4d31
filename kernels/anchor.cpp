#include "kernels/anchor.h"

extern "C" int lamplighter_ops_anchor() {
  return 1;
}
