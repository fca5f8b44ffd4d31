#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lamplighter {

// Bytes that this process can still allocate and use: memory and swap that are free or easily freed, and no
// more than limits on its address space and its data (ulimit -v, -d) leave. Nothing where the system does not
// tell.
std::optional<std::int64_t> free_host_memory();

// Gives pages that hold nothing any more back to the system. What a long run leaves between the blocks that
// it keeps would pile up else: the C library only returns what lies at the end. Some milliseconds.
void release_free_memory();
constexpr std::size_t kReleaseEvery = 64;  // pictures of a run after which it is done, some 10 s of the demo

// "512 B", "1.50 GiB": two decimals from KiB on.
std::string format_bytes(std::int64_t bytes);

}  // namespace lamplighter
