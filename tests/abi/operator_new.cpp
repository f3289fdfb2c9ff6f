// SPDX-License-Identifier: MIT
//
// Every form of operator new and delete: plain, array, nothrow, sized, aligned and their products, at all
// sizes, with the failures the C++ standard describes: bad_array_new_length for a count that overflows, the
// new-handler in a loop until it helps, throws or is taken away, bad_alloc then, and NULL from the nothrow
// forms.
#include "check.h"

#include <array>
#include <memory>
#include <new>
#include <string>
#include <vector>

// clang declares the sized forms only with -fsized-deallocation; the library has them in any case.
void operator delete(void*, std::size_t) noexcept;
void operator delete[](void*, std::size_t) noexcept;
void operator delete(void*, std::size_t, std::align_val_t) noexcept;
void operator delete[](void*, std::size_t, std::align_val_t) noexcept;

namespace {

// One way to get and give back memory; the same table runs through all sizes.
struct Form {
  const char* name;
  void* (*allocate)(size_t size);
  void (*release)(void* object, size_t size);
};

constexpr Form kForms[] = {
    {"new, delete", [](size_t n) { return ::operator new(n); }, [](void* p, size_t) { ::operator delete(p); }},
    {"new[], delete[]", [](size_t n) { return ::operator new[](n); }, [](void* p, size_t) { ::operator delete[](p); }},
    {"new, sized delete", [](size_t n) { return ::operator new(n); },
     [](void* p, size_t n) { ::operator delete(p, n); }},
    {"new[], sized delete[]", [](size_t n) { return ::operator new[](n); },
     [](void* p, size_t n) { ::operator delete[](p, n); }},
    {"nothrow new, nothrow delete", [](size_t n) { return ::operator new(n, std::nothrow); },
     [](void* p, size_t) { ::operator delete(p, std::nothrow); }},
    {"nothrow new[], nothrow delete[]", [](size_t n) { return ::operator new[](n, std::nothrow); },
     [](void* p, size_t) { ::operator delete[](p, std::nothrow); }},
    {"new, free", [](size_t n) { return ::operator new(n); }, [](void* p, size_t) { free(keep(p)); }},
};

void every_form_works_at_every_size() {
  for (const Form& form : kForms) {
    for (size_t size = 0; size < 20'000'000; size = size < 1100 ? size + 1 : size * 4 / 3 + 1) {
      void* object = keep(form.allocate(size));
      CHECK_MSG(object != nullptr, "%s, size %zu", form.name, size);
      CHECK_MSG(reinterpret_cast<uintptr_t>(object) % 16 == 0, "%s, size %zu: %p", form.name, size, object);
      CHECK_GE(malloc_usable_size(object), size);
      fill_pattern(object, size, size);
      CHECK_EQ(find_damage(object, size, size, size), size);
      form.release(keep(object), size);
    }
  }
}

void new_of_zero_bytes_gives_unique_pointers() {
  std::array<void*, 100> object{};
  for (void*& each : object) each = keep(::operator new(opaque(0)));
  for (size_t i = 0; i < object.size(); ++i)
    for (size_t j = 0; j < i; ++j) CHECK(object[i] != object[j]);
  for (void* each : object) ::operator delete(each, opaque(0));
}

void aligned_new_works_at_every_alignment_and_size() {
  static const size_t kSizes[] = {0, 1, 15, 64, 100, 1000, 4096, 10000, 32768, 40000, 65536, 300000, 2 << 20};
  for (int shift = 3; shift <= 30; ++shift) {
    const size_t alignment = size_t{1} << shift;
    const std::align_val_t tag{alignment};
    for (size_t size : kSizes) {
      std::array<void*, 4> object = {keep(::operator new(size, tag)), keep(::operator new[](size, tag)),
                                     keep(::operator new(size, tag, std::nothrow)),
                                     keep(::operator new[](size, tag, std::nothrow))};
      for (void* each : object) {
        CHECK(each != nullptr);
        if (reinterpret_cast<uintptr_t>(each) % alignment != 0)
          CHECK_FAIL("alignment %zu size %zu: %p", alignment, size, each);
        fill_pattern(each, size, reinterpret_cast<uintptr_t>(each));
      }
      for (void* each : object) CHECK_EQ(find_damage(each, size, size, reinterpret_cast<uintptr_t>(each)), size);
      if (shift % 2 == 0) {
        ::operator delete(object[0], tag);
        ::operator delete[](object[1], tag);
      } else {
        ::operator delete(object[0], size, tag);
        ::operator delete[](object[1], size, tag);
      }
      ::operator delete(object[2], tag, std::nothrow);
      ::operator delete[](object[3], tag, std::nothrow);
    }
  }
}

struct alignas(256) Wide {
  char bytes[700];
};

void over_aligned_types_are_made_by_plain_expressions() {
  for (int round = 0; round < 100; ++round) {
    Wide* one = new Wide;
    Wide* many = new Wide[static_cast<size_t>(round) + 1];
    CHECK_EQ(reinterpret_cast<uintptr_t>(keep(one)) % 256, 0);
    CHECK_EQ(reinterpret_cast<uintptr_t>(keep(many)) % 256, 0);
    delete one;
    delete[] many;
  }
}

void delete_of_null_does_nothing() {
  const auto null = [] { return keep(nullptr); };
  ::operator delete(null());
  ::operator delete[](null());
  ::operator delete (null(), size_t{0});
  ::operator delete (null(), size_t{100});
  ::operator delete[](null(), size_t{100});
  ::operator delete (null(), std::align_val_t{64});
  ::operator delete[](null(), std::align_val_t{64});
  ::operator delete (null(), size_t{100}, std::align_val_t{64});
  ::operator delete[](null(), size_t{100}, std::align_val_t{64});
  ::operator delete(null(), std::nothrow);
  ::operator delete[](null(), std::nothrow);
  ::operator delete (null(), std::align_val_t{64}, std::nothrow);
  ::operator delete[](null(), std::align_val_t{64}, std::nothrow);
}

const size_t kImpossible[] = {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096, static_cast<size_t>(PTRDIFF_MAX) + 1,
                              size_t{1} << 62};

// libstdc++ 12's own aligned new rounds the size up to the alignment without a look at the overflow, and then
// gives a tiny object for a huge request. brimful's must not.
bool is_rounded_to_zero_by_libstdcxx(size_t size) { return !is_brimful() && size > SIZE_MAX - (1 << 20); }

template <typename Action>
void expect_bad_alloc(const char* what, size_t size, Action action) {
  bool is_caught = false;
  try {
    keep(action());
  } catch (const std::bad_alloc&) {
    is_caught = true;
  }
  CHECK_MSG(is_caught, "%s of %#zx bytes does not throw", what, size);
}

void impossible_sizes_throw_bad_alloc() {
  for (size_t impossible : kImpossible) {
    const size_t size = opaque(impossible);
    expect_bad_alloc("new", size, [&] { return ::operator new(size); });
    expect_bad_alloc("new[]", size, [&] { return ::operator new[](size); });
    if (is_rounded_to_zero_by_libstdcxx(size)) continue;
    expect_bad_alloc("aligned new", size, [&] { return ::operator new (size, std::align_val_t{64}); });
    expect_bad_alloc("aligned new[]", size, [&] { return ::operator new[](size, std::align_val_t{1 << 20}); });
  }
}

void nothrow_new_returns_null_for_impossible_sizes() {
  for (size_t impossible : kImpossible) {
    const size_t size = opaque(impossible);
    CHECK_PTR_EQ(keep(::operator new(size, std::nothrow)), nullptr);
    CHECK_PTR_EQ(keep(::operator new[](size, std::nothrow)), nullptr);
    if (is_rounded_to_zero_by_libstdcxx(size)) continue;
    CHECK_PTR_EQ(keep(::operator new (size, std::align_val_t{4096}, std::nothrow)), nullptr);
    CHECK_PTR_EQ(keep(::operator new[](size, std::align_val_t{32}, std::nothrow)), nullptr);
  }
}

// clang asks operator new[] for SIZE_MAX bytes instead of throwing bad_array_new_length, its base class,
// itself.
#if defined(__clang__)
using BadLength = std::bad_alloc;
#else
using BadLength = std::bad_array_new_length;
#endif

template <typename Element>
void expect_bad_length(size_t count) {
  bool is_caught = false;
  try {
    keep(new Element[opaque(count)]);
  } catch (const BadLength&) {
    is_caught = true;
  }
  CHECK_MSG(is_caught, "count %#zx of elements of %zu bytes", count, sizeof(Element));
}

void array_counts_that_overflow_throw_bad_array_new_length() {
  struct Large {
    char bytes[4096];
  };
  for (size_t count : {SIZE_MAX, SIZE_MAX / 4096 + 1, SIZE_MAX / 2}) expect_bad_length<Large>(count);
  expect_bad_length<int>(static_cast<size_t>(-1));
}

int handler_calls;

void the_new_handler_is_called_until_it_is_taken_away() {
  handler_calls = 0;
  std::set_new_handler([] {
    if (++handler_calls == 3) std::set_new_handler(nullptr);
  });
  expect_bad_alloc("new", 1, [] { return ::operator new(opaque(size_t{1} << 62)); });
  CHECK_EQ(handler_calls, 3);
  CHECK(std::get_new_handler() == nullptr);
}

void the_new_handler_serves_array_aligned_and_nothrow_forms_too() {
  const size_t size = opaque(size_t{1} << 62);
  const auto handler = [] {
    if (++handler_calls % 2 == 0) std::set_new_handler(nullptr);
  };
  handler_calls = 0;
  std::set_new_handler(handler);
  expect_bad_alloc("new[]", size, [&] { return ::operator new[](size); });
  CHECK_EQ(handler_calls, 2);
  std::set_new_handler(handler);
  expect_bad_alloc("aligned new", size, [&] { return ::operator new (size, std::align_val_t{128}); });
  CHECK_EQ(handler_calls, 4);
  std::set_new_handler(handler);
  CHECK_PTR_EQ(keep(::operator new(size, std::nothrow)), nullptr);
  CHECK_EQ(handler_calls, 6);
  std::set_new_handler(handler);
  CHECK_PTR_EQ(keep(::operator new (size, std::align_val_t{128}, std::nothrow)), nullptr);
  CHECK_EQ(handler_calls, 8);
}

struct Refusal : std::bad_alloc {};

void what_the_new_handler_throws_arrives() {
  std::set_new_handler([] { throw Refusal(); });
  bool is_caught = false;
  try {
    keep(::operator new(opaque(SIZE_MAX)));
  } catch (const Refusal&) {
    is_caught = true;
  }
  CHECK(is_caught);
  // A nothrow form swallows it: it must not leave through a noexcept function.
  CHECK_PTR_EQ(keep(::operator new(opaque(SIZE_MAX), std::nothrow)), nullptr);
  std::set_new_handler(nullptr);
}

void containers_strings_and_shared_pointers_keep_their_contents() {
  std::vector<std::shared_ptr<std::string>> all;
  for (int i = 0; i < 30000; ++i)
    all.push_back(std::make_shared<std::string>(static_cast<size_t>(i % 300), static_cast<char>('a' + i % 26)));
  for (size_t i = 0; i < all.size(); i += 3) all[i].reset();
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 3 == 0) continue;
    CHECK_EQ(all[i]->size(), i % 300);
    CHECK(all[i]->find_first_not_of(static_cast<char>('a' + i % 26)) == std::string::npos);
  }
}

}  // namespace

int main() {
  begin(60);
  RUN(every_form_works_at_every_size);
  RUN(new_of_zero_bytes_gives_unique_pointers);
  RUN(aligned_new_works_at_every_alignment_and_size);
  RUN(over_aligned_types_are_made_by_plain_expressions);
  RUN(delete_of_null_does_nothing);
  RUN(impossible_sizes_throw_bad_alloc);
  RUN(nothrow_new_returns_null_for_impossible_sizes);
  RUN(array_counts_that_overflow_throw_bad_array_new_length);
  RUN(the_new_handler_is_called_until_it_is_taken_away);
  RUN(the_new_handler_serves_array_aligned_and_nothrow_forms_too);
  RUN(what_the_new_handler_throws_arrives);
  RUN(containers_strings_and_shared_pointers_keep_their_contents);
  return finish();
}
