#pragma once

// Referencing this symbol keeps the operator library among a program's loaded libraries: linkers drop
// libraries that nothing refers to, and with it every operator that TorchScript archives call.
extern "C" __attribute__((visibility("default"))) int lamplighter_ops_anchor();
