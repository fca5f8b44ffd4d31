#include "batch/processes/work_queue.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <set>
#include <vector>

namespace {
std::atomic<int> messages_left{-1};  // negative: no limit
}

// Stands in front of the C library's function for Torch, too: ends the process in place of a message.
extern "C" __attribute__((visibility("default"))) ssize_t send(int socket, const void* bytes,
                                                               std::size_t count, int flags) {
  if (messages_left >= 0 && messages_left-- == 0) ::_exit(0);
  return ::sendto(socket, bytes, count, flags, nullptr, 0);
}

namespace lamplighter {
namespace {

constexpr std::size_t kCaptions = 3;
constexpr int kMessages = 20;  // more than the process that is lost has to send

QueueOptions options_at(int port, bool serves) {
  return {"127.0.0.1:" + std::to_string(port), serves, 1};
}

std::unique_ptr<WorkQueue> join(const QueueOptions& options) {
  return WorkQueue::join(options, kCaptions, "run", [] { return true; });
}

int free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(probe, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(probe);
  return ntohs(address.sin_port);
}

// A process that generates every caption it gets and ends in place of a message.
pid_t start_process(int port, int messages) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  messages_left = messages;
  try {
    const auto queue = join(options_at(port, false));
    while (const auto caption = queue->next()) queue->done(*caption);
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(messages_left > 0 ? 2 : 0);  // 2: it has sent all
}

struct End {
  std::set<std::size_t> generated;  // by the process that stays
  int status = -1;                  // of the other one
};

End serve(int port, pid_t child) {
  End end;
  const auto queue = join(options_at(port, true));
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const auto generate = [&](std::size_t caption) {
    EXPECT_TRUE(end.generated.insert(caption).second) << caption;
    queue->done(caption);
  };
  while (const auto caption = queue->next()) generate(*caption);
  while (const auto caption = queue->lost([] { return true; })) generate(*caption);
  return end;
}

TEST(WorkQueue, EndsWhereverAnotherProcessIsKilled) {
  std::vector<int> ports;
  std::vector<pid_t> children;
  for (int messages = 0; messages < kMessages; ++messages) {
    ports.push_back(free_port());
    children.push_back(start_process(ports.back(), messages));
  }
  std::vector<std::future<End>> ends;
  for (std::size_t i = 0; i < children.size(); ++i)
    ends.push_back(std::async(std::launch::async, serve, ports[i], children[i]));
  std::set<std::size_t> counts;
  for (auto& future : ends) {
    const End end = future.get();
    EXPECT_NE(end.status, 1);
    counts.insert(end.generated.size());
    if (end.status == 2) {
      EXPECT_TRUE(end.generated.empty());
    }
  }
  EXPECT_EQ(counts, (std::set<std::size_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace lamplighter
