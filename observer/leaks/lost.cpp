// SPDX-License-Identifier: MIT
//
// Lost objects as a graph. First the objects that no other lost one points at, with what they lead to. What is left lies
// on rings, or behind one: there each object not yet seen is taken for a head, and when it leads to an earlier head of such a
// ring, that one is behind it after all.
#include "leaks/lost.h"

#include <algorithm>
#include <bit>

#include "memory/piece.h"

namespace brimful::observer::leaks {
namespace {

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

class Graph {
 public:
  Graph(const Objects& objects, const memory::Bits& lost)
      : objects_(objects), lost_(lost), before_(lost.words().size()) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      before_[i] = count;
      count += static_cast<std::uint32_t>(std::popcount(lost.words()[i]));
    }
    heads_.assign(count, kNobody);
  }

  std::vector<Leak> leaks() {
    std::vector<bool> is_pointed_at(heads_.size());
    each([&](Object object) { each_target(object, [&](Object target) { is_pointed_at[rank(target)] = true; }); });
    each([&](Object object) {
      if (!is_pointed_at[rank(object)]) follow(object);
    });
    each([&](Object object) {
      if (heads_[rank(object)] == kNobody) follow(object);
    });
    std::vector<Leak> result;
    for (std::uint32_t n = 0; n < leaks_.size(); ++n) {
      if (behind_[n] != n) {
        // The head too is behind another one, with all that was behind it.
        Leak& into = leaks_[top_of(n)];
        into.indirect_count += leaks_[n].indirect_count + 1;
        into.indirect_bytes += leaks_[n].indirect_bytes + objects_.span(leaks_[n].object).object_bytes;
      }
    }
    for (std::uint32_t n = 0; n < leaks_.size(); ++n) {
      if (behind_[n] == n) result.push_back(leaks_[n]);
    }
    std::sort(result.begin(), result.end(),
              [this](const Leak& a, const Leak& b) { return objects_.address(a.object) < objects_.address(b.object); });
    return result;
  }

 private:
  [[nodiscard]] std::uint32_t rank(Object object) const {
    const std::uint64_t number = objects_.number(object);
    const std::uint64_t below = lost_.words()[number / 64] & ((std::uint64_t{1} << (number % 64)) - 1);
    return before_[number / 64] + static_cast<std::uint32_t>(std::popcount(below));
  }

  template <class Visit>
  void each(Visit visit) const {
    for (std::uint32_t s = 0; s < objects_.spans().size(); ++s) {
      const Span& span = objects_.spans()[s];
      for (std::uint32_t i = 0; i < span.count; ++i) {
        const std::uint64_t word = lost_.words()[(span.first + i) / 64];
        if (word == 0) {
          i |= 63;  // none of these 64
        } else if (lost_.test(span.first + i)) {
          visit(Object{s, i});
        }
      }
    }
  }

  template <class Visit>
  void each_target(Object object, Visit visit) const {
    const Span& span = objects_.span(object);
    const std::uint64_t start = span.address(object.index);
    memory::visit_words(span.memory, start, start + span.object_bytes, sizeof(std::uint64_t), [&](std::uint64_t word) {
      Object target;
      if (!objects_.find(word, target) || !lost_.test(objects_.number(target))) return;
      if (target.span != object.span || target.index != object.index) visit(target);
    });
  }

  void follow(Object head) {
    const auto leak = static_cast<std::uint32_t>(leaks_.size());
    leaks_.push_back({head});
    behind_.push_back(leak);
    heads_[rank(head)] = leak;
    std::vector<Object> stack = {head};
    while (!stack.empty()) {
      const Object object = stack.back();
      stack.pop_back();
      each_target(object, [&](Object target) {
        std::uint32_t& owner = heads_[rank(target)];
        if (owner == kNobody) {
          owner = leak;
          leaks_[leak].indirect_count += 1;
          leaks_[leak].indirect_bytes += objects_.span(target).object_bytes;
          stack.push_back(target);
        } else if (owner != leak && behind_[owner] == owner && is_head(owner, target)) {
          behind_[owner] = leak;
        }
      });
    }
  }

  [[nodiscard]] bool is_head(std::uint32_t leak, Object object) const {
    return leaks_[leak].object.span == object.span && leaks_[leak].object.index == object.index;
  }
  [[nodiscard]] std::uint32_t top_of(std::uint32_t leak) const {
    while (behind_[leak] != leak) leak = behind_[leak];
    return leak;
  }

  const Objects& objects_;
  const memory::Bits& lost_;
  std::vector<std::uint32_t> before_;  // lost objects before each word of bits
  std::vector<std::uint32_t> heads_;   // for each lost object: the leak that leads there
  std::vector<Leak> leaks_;
  std::vector<std::uint32_t> behind_;  // for each leak: the one whose head leads to its head, or itself
};

}  // namespace

std::vector<Leak> leaks_among(const Objects& objects, const memory::Bits& lost) { return Graph(objects, lost).leaks(); }

memory::Bits lost_objects(const Objects& objects, const memory::Bits& reached, const memory::Bits& possibly) {
  memory::Bits lost(objects.numbers());
  for (std::size_t i = 0; i < lost.words().size(); ++i) {
    lost.words()[i] = objects.live().words()[i] & ~reached.words()[i] & ~possibly.words()[i];
  }
  return lost;
}

}  // namespace brimful::observer::leaks
