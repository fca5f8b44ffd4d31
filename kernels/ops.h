#pragma once

// The operators that the engine calls as functions. I = images, S = sequences (I, or 2 I as interleaved
// conditional/unconditional pairs), R = rows, V = vocabulary.
#include "kernels/commit/commit_args.h"
#include "kernels/commit/compact_args.h"
#include "kernels/commit/new_tokens_args.h"
#include "kernels/continuous/gaussian_args.h"
#include "kernels/sampling/sampling_args.h"
#include "kernels/step/ar_step_args.h"
#include "kernels/step/window_step_args.h"
#include "kernels/trees/children_args.h"
#include "kernels/trees/dynamic_args.h"
#include "kernels/verify/verify_args.h"
#include "kernels/window/window_args.h"
