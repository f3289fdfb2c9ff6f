// SPDX-License-Identifier: MIT
//
// Task<T>: a coroutine that other coroutines can await, so that a model reads like the functions it models.
//
// A task starts when it is awaited and hands control back to its caller when it ends. The only place where
// control leaves the whole chain is an awaited memory operation (explorer.h): there the explorer decides who
// goes on.
#pragma once

#include <coroutine>
#include <cstdlib>
#include <utility>

namespace brimful::model {

template <class T>
class Task;

namespace task_detail {

struct PromiseBase {
  std::coroutine_handle<> caller;

  struct Final {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      const std::coroutine_handle<> caller = handle.promise().caller;
      return caller ? caller : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  Final final_suspend() noexcept { return {}; }
  void unhandled_exception() { std::abort(); }
};

template <class T>
struct Promise : PromiseBase {
  T value = {};
  Task<T> get_return_object();
  void return_value(T result) { value = std::move(result); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
};

}  // namespace task_detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = task_detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) {
    handle_.promise().caller = caller;
    return handle_;
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) return std::move(handle_.promise().value);
  }

  // For the outermost task of a thread, which nobody awaits.
  void start() { handle_.resume(); }
  [[nodiscard]] bool is_done() const { return handle_.done(); }

 private:
  Handle handle_;
};

namespace task_detail {
template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace task_detail

}  // namespace brimful::model
