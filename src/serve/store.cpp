#include "serve/store.h"

#include <random>
#include <utility>

namespace lamplighter {
namespace {

std::string random_name() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;  // of the system, in libstdc++ one that nobody can foresee
  std::string name;
  for (int word = 0; word < 4; ++word) {
    const unsigned bits = random();
    for (unsigned digit = 0; digit < 8; ++digit) name += kDigits[bits >> (4 * digit) & 15U];
  }
  return name;
}

}  // namespace

void PictureStore::drop(Clock::time_point now, std::size_t room) {
  while (!ages_.empty() && (ages_.front().end <= now || bytes_ + room > most_bytes_)) {
    const auto found = pictures_.find(ages_.front().name);
    bytes_ -= found->second->size();
    pictures_.erase(found);
    ages_.pop_front();
  }
}

std::string PictureStore::add(std::string bytes, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  drop(now, bytes.size());
  std::string name = random_name();
  bytes_ += bytes.size();
  ages_.push_back({name, now + lifetime_});
  pictures_[name] = std::make_shared<const std::string>(std::move(bytes));
  return name;
}

PictureStore::Bytes PictureStore::find(const std::string& name, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  drop(now, 0);
  const auto found = pictures_.find(name);
  return found == pictures_.end() ? nullptr : found->second;
}

}  // namespace lamplighter
