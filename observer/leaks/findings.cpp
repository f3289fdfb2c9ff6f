// SPDX-License-Identifier: MIT
//
// Two looks, and what both found lost, in groups.
#include "leaks/findings.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "leaks/lost.h"
#include "stacks/origins.h"

namespace brimful::observer::leaks {
namespace {

constexpr timespec kBetweenLooks = {0, 50'000'000};

template <class Visit>
void each_set(const Objects& objects, const memory::Bits& bits, Visit visit) {
  for (std::uint32_t s = 0; s < objects.spans().size(); ++s) {
    const Span& span = objects.spans()[s];
    for (std::uint32_t i = 0; i < span.count; ++i) {
      if (bits.words()[(span.first + i) / 64] == 0) {
        i |= 63;  // none of these 64
      } else if (bits.test(span.first + i)) {
        visit(Object{s, i});
      }
    }
  }
}

class Groups {
 public:
  Groups(const Look& look, Types& types, const stacks::Origins& origins, const Wanted& wanted)
      : look_(look), types_(types), origins_(origins), wanted_(wanted) {}

  void add(const Leak& leak, bool is_possible) {
    const std::uint64_t bytes = look_.objects().span(leak.object).object_bytes;
    const std::string first = look_.first_bytes(leak.object, std::max(wanted_.contents, sizeof(std::uint64_t)));
    std::uint64_t first_word = 0;
    std::memcpy(&first_word, first.data(), std::min(first.size(), sizeof first_word));
    const Type& type = types_.of(first_word);
    std::vector<std::string> stack = origins_.of(look_.objects().address(leak.object));
    Group& group = groups_[{is_possible, bytes, type.name, type.module, stack}];
    if (group.direct.count == 0) {
      group.is_possible = is_possible;
      group.size = bytes;
      group.type = type;
      group.stack = std::move(stack);
      group.first_bytes = first.substr(0, wanted_.contents);
    }
    group.direct.add(1, bytes);
    group.indirect.add(leak.indirect_count, leak.indirect_bytes);
    if (group.addresses.size() < wanted_.addresses) group.addresses.push_back(look_.objects().address(leak.object));
  }

  // Moves the groups into the report, those that are not suppressed, the largest first.
  void finish(const Suppressions& suppressions, Report& report) {
    for (auto& [key, group] : groups_) {
      if (suppressions.holds(group)) {
        report.suppressed.add(group.direct.count + group.indirect.count, group.direct.bytes + group.indirect.bytes);
        continue;
      }
      if (group.is_possible) report.possible.add(group.direct.count, group.direct.bytes);
      report.groups.push_back(std::move(group));
    }
    std::stable_sort(report.groups.begin(), report.groups.end(), [](const Group& a, const Group& b) {
      return a.direct.bytes + a.indirect.bytes > b.direct.bytes + b.indirect.bytes;
    });
  }

 private:
  const Look& look_;
  Types& types_;
  const stacks::Origins& origins_;
  const Wanted& wanted_;
  std::map<std::tuple<bool, std::uint64_t, std::string, std::string, std::vector<std::string>>, Group> groups_;
};

}  // namespace

bool find_leaks(memory::Target& target, const Wanted& wanted, const Suppressions& suppressions, Report& report,
                std::string* error) {
  Look look;
  if (!look.take(target)) {
    *error = look.error();
    return false;
  }
  report.held_seconds = {look.held_seconds()};
  std::vector<std::uint64_t> before;
  each_set(look.objects(), look.lost(), [&](Object object) { before.push_back(look.objects().address(object)); });
  if (target.pid() == 0) report.held_seconds.clear();
  const bool once = target.pid() == 0 || wanted.once || (wanted.once_if_alone && look.threads() == 1);
  if (!before.empty() && !once) {
    nanosleep(&kBetweenLooks, nullptr);
    if (!look.take(target)) {
      *error = look.error();
      return false;
    }
    report.held_seconds.push_back(look.held_seconds());
    memory::Bits& lost = look.lost();
    each_set(look.objects(), lost, [&](Object object) {
      if (std::binary_search(before.begin(), before.end(), look.objects().address(object))) return;
      lost.clear(look.objects().number(object));
      ++report.without_second_look;
    });
  }
  report.pid = target.pid();
  report.program = target.program();
  report.library = look.view().library;
  report.live = {look.objects().live_count(), look.objects().live_bytes()};
  report.copied_bytes = look.copied_bytes();
  Types types(look.view().mappings, target.reader());
  stacks::Origins origins;
  origins.read(target);
  Groups groups(look, types, origins, wanted);
  for (const Leak& leak : leaks_among(look.objects(), look.lost())) groups.add(leak, false);
  each_set(look.objects(), look.possibly(), [&](Object object) { groups.add({object}, true); });
  groups.finish(suppressions, report);
  return true;
}

}  // namespace brimful::observer::leaks
