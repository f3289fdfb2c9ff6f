// SPDX-License-Identifier: MIT
//
// inspect/command.h.
#include "inspect/command.h"

#include <getopt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "heap/model.h"
#include "inspect/address.h"
#include "inspect/picture.h"
#include "memory/target.h"
#include "stacks/origins.h"

namespace brimful::observer::inspect {
namespace {

constexpr int kLooks = 5;  // at an address that looks

struct Request {
  bool has_address = false;
  std::uint64_t address = 0;
  PictureOptions picture;
  std::string target;
};

bool number_of(const char* text, int base, std::uint64_t& value) {
  char* end = nullptr;
  value = std::strtoull(text, &end, base);
  return *text >= '0' && *text <= '9' && *end == '\0';
}

bool parse(int count, char** arguments, Request& request) {
  enum : int { kAddress = 256, kBiggest, kCheck };
  static const option kLong[] = {{"address", required_argument, nullptr, kAddress},
                                 {"biggest", required_argument, nullptr, kBiggest},
                                 {"check", no_argument, nullptr, kCheck},
                                 {nullptr, 0, nullptr, 0}};
  bool is_good = true;
  std::uint64_t number = 0;
  for (int found = 0; is_good && (found = getopt_long(count, arguments, "", kLong, nullptr)) != -1;) {
    switch (found) {
      case kAddress:
        is_good = number_of(optarg, 0, request.address);
        request.has_address = true;
        break;
      case kBiggest:
        is_good = number_of(optarg, 10, number);
        request.picture.biggest = number;
        break;
      case kCheck:
        request.picture.with_check = true;
        break;
      default:
        is_good = false;
        break;
    }
  }
  if (!is_good || optind + 1 != count) return false;
  request.target = arguments[optind];
  return true;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "brimful inspect: %s\n", why.c_str());
  return 1;
}

// Names for the frames of an object's sample, innermost first.
void add_names(nlohmann::json& sample, memory::Target& target) {
  stacks::Origins origins;
  origins.read(target);
  const std::uint64_t number = sample["number"];
  sample["allocated_by"]["names"] = origins.allocation(number);
  if (sample.contains("freed_by")) sample["freed_by"]["names"] = origins.release(number);
}

}  // namespace

int main(int count, char** arguments) {
  Request request;
  if (!parse(count, arguments, request)) {
    std::fputs("usage: brimful-observer inspect [--address ADDRESS] [--biggest N] [--check] PID|CORE\n", stderr);
    return 2;
  }
  const auto began = std::chrono::steady_clock::now();
  std::string why;
  const std::unique_ptr<memory::Target> target = memory::open_target(request.target, &why);
  if (target == nullptr) return fail(why);
  std::vector<memory::Mapping> mappings;
  if (!target->mappings(mappings)) return fail(target->error());
  const heap::Looks looks = target->pid() != 0 ? heap::Looks::kTwo : heap::Looks::kOne;
  nlohmann::json result;
  for (int look = 0; look < kLooks; ++look) {
    heap::Model model;
    if (!model.read(target->anatomy(), target->reader(), looks)) {
      return fail(target->error().empty() ? request.target + ": " + model.error() : target->error());
    }
    if (!request.has_address) {
      result = picture(model, target->pid(), request.picture);
      break;
    }
    result = describe(model, mappings, target->reader(), request.address);
    if (!result.value("moving", false)) break;
  }
  if (result.contains("sample")) add_names(result["sample"], *target);
  result["schema"] = "brimful-inspect-1";
  result["target"] = {{"pid", target->pid()}, {"program", target->program()}, {"library", target->anatomy().version()}};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  result["seconds"] = took.count();
  std::puts(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace brimful::observer::inspect
