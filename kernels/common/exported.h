#pragma once

// Marks the functions of this library that programs call; all others are hidden.
#define LAMPLIGHTER_EXPORTED __attribute__((visibility("default")))
