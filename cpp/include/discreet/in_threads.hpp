// The same work for several parts, side by side.
#pragma once

#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace discreet {

// Calls work(0), ..., work(n - 1), the first here and the others in threads of their own, and throws what one of them
// threw. Where the system has no more threads to give, the rest is done here too.
template <class Work>
void in_threads(std::size_t n, Work&& work) {
  std::vector<std::exception_ptr> failed(n);
  const auto run = [&](std::size_t part) {
    try {
      work(part);
    } catch (...) {
      failed[part] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(n);
  std::size_t started = 1;
  try {
    for (; started < n; ++started) threads.emplace_back(run, started);
  } catch (const std::system_error&) {
  }
  if (n > 0) run(0);
  for (std::size_t part = started; part < n; ++part) run(part);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : failed)
    if (error) std::rethrow_exception(error);
}

}  // namespace discreet
