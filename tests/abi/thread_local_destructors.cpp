// SPDX-License-Identifier: MIT
//
// C++ thread_local objects with destructors that free and allocate, mixed with pthread keys: the C++ ones run
// first, then the keys in rounds, then the thread is gone. Each container here was filled by its own thread,
// and each destructor makes new garbage while it dies.
#include "check.h"

#include <pthread.h>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

int destroyed;

class Noisy {
 public:
  explicit Noisy(int id) : id_(id), text_(static_cast<size_t>(id % 500 + 20), static_cast<char>('a' + id % 26)) {}
  ~Noisy() {
    CHECK(text_.find_first_not_of(static_cast<char>('a' + id_ % 26)) == std::string::npos);
    std::vector<std::unique_ptr<std::string>> garbage;
    for (int i = 0; i < 40; ++i) garbage.push_back(std::make_unique<std::string>(static_cast<size_t>(i) * 37, 'g'));
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
  }
  Noisy(const Noisy&) = delete;
  Noisy& operator=(const Noisy&) = delete;
  void touch() { text_.append(1, text_[0]); }

 private:
  int id_;
  std::string text_;
};

thread_local std::vector<std::unique_ptr<Noisy>> local_objects;
thread_local std::map<int, std::string> local_map;
pthread_key_t late_key;

void thread_body(int id) {
  for (int i = 0; i < 20; ++i) {
    local_objects.push_back(std::make_unique<Noisy>(id * 20 + i));
    local_objects.back()->touch();
    local_map[i * 7 % 20] = std::string(static_cast<size_t>(i) * 11, 'm');
  }
  pthread_setspecific(late_key, new std::string(1000, 'k'));
}

void late_destructor(void* argument) {
  auto* text = static_cast<std::string*>(argument);
  CHECK_EQ(text->size(), 1000);
  delete text;
  delete new std::vector<int>(5000);
}

void thread_local_destructors_free_and_allocate() {
  CHECK_EQ(pthread_key_create(&late_key, late_destructor), 0);
  for (int round = 0; round < 100; ++round) {
    std::thread threads[4];
    for (int i = 0; i < 4; ++i) threads[i] = std::thread(thread_body, round * 4 + i);
    for (std::thread& thread : threads) thread.join();
  }
  CHECK_EQ(destroyed, 100 * 4 * 20);
  pthread_key_delete(late_key);
}

struct AtProgramEnd {
  ~AtProgramEnd() {
    // Runs after main, among the last things of the process.
    std::vector<std::string> last(1000, std::string(100, 'z'));
    for (const std::string& text : last)
      if (text != std::string(100, 'z')) _exit(97);
    held.clear();
  }
  std::map<int, std::string> held;
};
AtProgramEnd at_program_end;

void static_destructors_are_prepared_to_use_the_heap_after_main() {
  for (int i = 0; i < 2000; ++i) at_program_end.held[i] = std::string(static_cast<size_t>(i % 300), 'h');
  CHECK_EQ(atexit([] { delete new std::vector<int>(100000); }), 0);
}

}  // namespace

int main() {
  begin(60);
  RUN(thread_local_destructors_free_and_allocate);
  RUN(static_destructors_are_prepared_to_use_the_heap_after_main);
  return finish();
}
