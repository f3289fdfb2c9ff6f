// SPDX-License-Identifier: MIT
//
// zcache: a cache of compressed values on the handle pool or on malloc, filled with real files and weighed. README.md beside
// this file says what for and what came out.
#include <dlfcn.h>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "corpus.h"
#include "options.h"
#include "progress.h"
#include "workload.h"

namespace {

using zcache::Corpus;
using zcache::Options;
using zcache::Outcome;
using zcache::Times;
using zcache::Weight;

// The file that malloc comes from.
std::string_view malloc_library() {
  Dl_info info{};
  void* const malloc_found = dlsym(RTLD_DEFAULT, "malloc");
  if (malloc_found == nullptr || dladdr(malloc_found, &info) == 0 || info.dli_fname == nullptr) return "unknown";
  return info.dli_fname;
}

void print(const char* name, const Times& times) {
  std::printf("  \"%s_ns\": {\"calls\": %zu, \"mean\": %.0f, \"median\": %u, \"p99\": %u, \"max\": %u},\n", name,
              times.calls, times.mean, times.median, times.p99, times.most);
}

void print(const Weight& weight, bool last) {
  const auto& [state, cache, memory, resident, lazy_free, settled] = weight;
  const double live = static_cast<double>(std::max<std::size_t>(cache.stored_bytes, 1));
  std::printf("    {\"state\": \"%s\", \"values\": %zu, \"raw_values\": %zu, \"source_bytes\": %zu,\n", state,
              cache.keys, cache.raw, cache.source_bytes);
  std::printf("     \"live_bytes\": %zu, \"resident_bytes\": %zu, \"lazy_free_bytes\": %zu, \"settled_bytes\": %zu,\n",
              cache.stored_bytes, resident, lazy_free, settled);
  std::printf("     \"resident_per_live\": %.4f, \"settled_per_live\": %.4f,\n", static_cast<double>(resident) / live,
              static_cast<double>(settled) / live);
  std::printf("     \"held_bytes\": %zu, \"metadata_bytes\": %zu, \"moved\": %llu, \"evicted\": %llu}%s\n", memory.held,
              memory.metadata, static_cast<unsigned long long>(memory.moved),
              static_cast<unsigned long long>(cache.evicted), last ? "" : ",");
}

void print(const Options& options, const Corpus& corpus, const Outcome& outcome) {
  const std::string_view library = malloc_library();
  std::printf("{\n  \"malloc\": \"%.*s\",\n", static_cast<int>(library.size()), library.data());
  std::printf("  \"store\": \"%s\", \"codec\": \"%s\", \"level\": %d, \"piece\": %zu, \"seed\": %llu,\n",
              options.handles ? "handles" : "malloc", options.codec_name.c_str(), options.level, options.piece,
              static_cast<unsigned long long>(options.seed));
  std::printf("  \"files\": %zu, \"pieces\": %zu, \"bytes\": %zu, \"unreadable\": %zu,\n", corpus.files(),
              corpus.pieces(), corpus.bytes(), corpus.unreadable());
  print("put", outcome.put);
  print("get", outcome.get);
  print("erase", outcome.erase);
  std::printf("  \"refused\": %zu, \"wrong\": %zu,\n  \"states\": [\n", outcome.refused, outcome.wrong);
  for (const Weight& weight : outcome.weights) print(weight, &weight == &outcome.weights.back());
  std::printf("  ]\n}\n");
}

int work(const Options& options) {
  const Corpus corpus(options.folders, options.bytes, options.piece);
  const Outcome outcome = run(options, corpus);
  print(options, corpus, outcome);
  if (outcome.wrong != 0) std::fprintf(stderr, "zcache: %zu values were not what was put\n", outcome.wrong);
  if (outcome.refused != 0) std::fprintf(stderr, "zcache: %zu values found no memory\n", outcome.refused);
  return outcome.wrong != 0 || outcome.refused != 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = zcache::parse(argc, argv);
    if (options.help) {
      std::fputs(zcache::kHelp, stdout);
      return 0;
    }
    zcache::handle_interrupts();
    return work(options);
  } catch (const zcache::Interrupted&) {
    std::fputs("zcache: interrupted\n", stderr);
    return 130;
  } catch (const std::invalid_argument& fault) {
    std::fprintf(stderr, "zcache: %s\n", fault.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fputs("zcache: out of memory\n", stderr);
    return 1;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "zcache: %s\n", fault.what());
    return 1;
  }
}
