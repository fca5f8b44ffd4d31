#include "serve/store.h"

#include <random>
#include <utility>

namespace lamplighter {
namespace {

std::string random_name() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;  // of the system: in libstdc++ nobody can predict it
  std::string name;
  for (int word = 0; word < 4; ++word) {
    const unsigned bits = random();
    for (unsigned digit = 0; digit < 8; ++digit) name += kDigits[bits >> (4 * digit) & 15U];
  }
  return name;
}

}  // namespace

void ImageStore::drop(Clock::time_point now, std::size_t room) {
  while (!ages_.empty() && (ages_.front().end <= now || bytes_ + room > most_bytes_)) {
    const auto found = images_.find(ages_.front().name);
    bytes_ -= found->second->size();
    images_.erase(found);
    ages_.pop_front();
  }
}

std::string ImageStore::add(std::string bytes, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  drop(now, bytes.size());
  std::string name = random_name();
  bytes_ += bytes.size();
  ages_.push_back({name, now + lifetime_});
  images_[name] = std::make_shared<const std::string>(std::move(bytes));
  return name;
}

ImageStore::Bytes ImageStore::find(const std::string& name, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  drop(now, 0);
  const auto found = images_.find(name);
  return found == images_.end() ? nullptr : found->second;
}

}  // namespace lamplighter
