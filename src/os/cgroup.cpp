// SPDX-License-Identifier: MIT
//
// os/cgroup.h on Linux.
#include "os/cgroup.h"

#include <string.h>

#include "os/small_file.h"

namespace brimful::os {
namespace {

// v1 shows "no limit" as the most pages that fit into a long.
constexpr std::size_t kAsGoodAsNone = std::size_t{1} << 60;

const char* end_of_line(const char* text) {
  while (*text != '\0' && *text != '\n') ++text;
  return text;
}

// The number that `text` begins with; kNoLimit when it begins with none ("max").
std::size_t number(const char* text) {
  if (*text < '0' || *text > '9') return kNoLimit;
  std::size_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (__builtin_mul_overflow(value, std::size_t{10}, &value)) return kNoLimit;
    value += static_cast<unsigned>(*text - '0');
  }
  return value < kAsGoodAsNone ? value : kNoLimit;
}

// The path of one line of /proc/self/cgroup, "number:controllers:path", if it is of the memory controller.
const char* path_of(const char* line, const char* end, bool* is_unified) {
  const auto* controllers = static_cast<const char*>(memchr(line, ':', static_cast<std::size_t>(end - line)));
  if (controllers == nullptr) return nullptr;
  ++controllers;
  const auto* path = static_cast<const char*>(memchr(controllers, ':', static_cast<std::size_t>(end - controllers)));
  if (path == nullptr) return nullptr;
  *is_unified = path == controllers;
  for (const char* name = controllers; name < path;) {
    const char* stop = name;
    while (stop < path && *stop != ',') ++stop;
    if (stop - name == 6 && memcmp(name, "memory", 6) == 0) return path + 1;
    name = stop + 1;
  }
  return *is_unified ? path + 1 : nullptr;
}

void set_group(MemoryGroup& group, const char* mount, const char* path, const char* end, bool is_unified) {
  const std::size_t mount_length = strlen(mount);
  std::size_t path_length = static_cast<std::size_t>(end - path);
  while (path_length > 0 && path[path_length - 1] == '/') --path_length;  // the root group is "/"
  if (mount_length + path_length >= sizeof group.folder) path_length = 0;
  memcpy(group.folder, mount, mount_length);
  memcpy(group.folder + mount_length, path, path_length);
  group.folder[mount_length + path_length] = '\0';
  group.mount_length = mount_length;
  group.is_unified = is_unified;
}

// Reads `name` in the first `length` bytes of the group's folder. -1 when it is not there.
long read_in(const MemoryGroup& group, std::size_t length, const char* name, char* text, std::size_t capacity) {
  char path[MemoryGroup::kMostPath + 32];
  const std::size_t name_length = strlen(name);
  if (length + name_length + 2 > sizeof path) return -1;
  memcpy(path, group.folder, length);
  path[length] = '/';
  memcpy(path + length + 1, name, name_length + 1);
  return read_small_file(path, text, capacity);
}

std::size_t limit_in(const MemoryGroup& group, std::size_t length, const char* name) {
  char text[32];
  return read_in(group, length, name, text, sizeof text) > 0 ? number(text) : kNoLimit;
}

// The number behind `key` and a space, at the beginning of a line.
std::uint64_t value_of(const char* text, const char* key) {
  const std::size_t length = strlen(key);
  for (const char* line = text; *line != '\0';) {
    if (strncmp(line, key, length) == 0 && line[length] == ' ') {
      const std::size_t value = number(line + length + 1);
      return value != kNoLimit ? value : 0;
    }
    line = end_of_line(line);
    if (*line == '\n') ++line;
  }
  return 0;
}

// "some avg10=1.23 …" is 123.
std::uint32_t some_avg10(const char* text) {
  constexpr const char* kKey = "some avg10=";
  if (strncmp(text, kKey, strlen(kKey)) != 0) return 0;
  std::uint32_t value = 0;
  int decimals = -1;
  for (const char* c = text + strlen(kKey); decimals < 2 && ((*c >= '0' && *c <= '9') || *c == '.'); ++c) {
    if (*c == '.') {
      decimals = 0;
    } else {
      value = value * 10 + static_cast<std::uint32_t>(*c - '0');
      if (decimals >= 0) ++decimals;
    }
  }
  for (int missing = decimals < 0 ? 0 : decimals; missing < 2; ++missing) value *= 10;
  return value;
}

}  // namespace

void find_memory_group(MemoryGroup& into, const CgroupPlaces& places) {
  into.mount_length = 0;
  if (read_small_file(places.membership, into.membership, sizeof into.membership) <= 0) return;
  for (const char* line = into.membership; *line != '\0';) {
    const char* end = end_of_line(line);
    bool is_unified = false;
    const char* path = path_of(line, end, &is_unified);
    // The line of v2 is there with v1, too, and means something only if no hierarchy of v1 has the controller.
    if (path != nullptr && (!is_unified || into.mount_length == 0)) {
      set_group(into, is_unified ? places.unified : places.memory, path, end, is_unified);
    }
    line = *end == '\n' ? end + 1 : end;
  }
}

GroupLimits group_limits(const MemoryGroup& group) {
  GroupLimits limits = {kNoLimit, kNoLimit};
  if (group.mount_length == 0) return limits;
  for (std::size_t length = strlen(group.folder);; --length) {
    if (length != group.mount_length && group.folder[length] != '/' && group.folder[length] != '\0') continue;
    const std::size_t most = limit_in(group, length, group.is_unified ? "memory.max" : "memory.limit_in_bytes");
    const std::size_t high = limit_in(group, length, group.is_unified ? "memory.high" : "memory.soft_limit_in_bytes");
    if (most < limits.most) limits.most = most;
    if (high < limits.high) limits.high = high;
    if (length == group.mount_length) return limits;
  }
}

std::uint64_t group_refusals(const MemoryGroup& group) {
  if (group.mount_length == 0) return 0;
  char text[256];
  const std::size_t length = strlen(group.folder);
  if (group.is_unified) {
    if (read_in(group, length, "memory.events", text, sizeof text) <= 0) return 0;
    return value_of(text, "high") + value_of(text, "max");
  }
  if (read_in(group, length, "memory.failcnt", text, sizeof text) <= 0) return 0;
  const std::size_t count = number(text);
  return count != kNoLimit ? count : 0;
}

std::uint32_t memory_stall(const MemoryGroup& group, const char* system_file) {
  char text[256];
  const bool has_own = group.mount_length != 0 && group.is_unified &&
                       read_in(group, strlen(group.folder), "memory.pressure", text, sizeof text) > 0;
  if (has_own || read_small_file(system_file, text, sizeof text) > 0) return some_avg10(text);
  return 0;
}

}  // namespace brimful::os
