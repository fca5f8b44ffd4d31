#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lamplighter {

// Bytes that this process can still allocate and use: free or reclaimable memory and swap, within the limits
// on address space and data (ulimit -v, -d). Empty where the system does not report it.
std::optional<std::int64_t> free_host_memory();

// Returns free heap pages to the system; takes a few milliseconds. Without it a long run accumulates free
// blocks between used ones, because the C library only returns the end of the heap.
void release_free_memory();
constexpr std::size_t kReleaseEvery = 64;  // images between calls, some 10 s of the demo model

// Lets all threads share a few heaps, where the environment does not say how many. By itself the C library
// gives eight to every core, each keeps the room of its largest blocks, and threads that only answer requests
// fill them. Call it before there are threads.
void share_heaps();

// Formats like "512 B" and "1.50 GiB": two decimals from KiB on.
std::string format_bytes(std::int64_t bytes);

}  // namespace lamplighter
