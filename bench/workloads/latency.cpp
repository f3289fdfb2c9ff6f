// SPDX-License-Identifier: MIT
//
// latency: how long single calls of malloc, free and realloc take, by operation and by size.
//
// Written for this bench, in the manner of those who measure services (G. Tene, "How NOT to Measure Latency", 2013):
// a mean hides the one call in a thousand that takes a lock, refills a cache or asks the kernel, and that call is what
// a user waits for. Each thread has a table of slots; a step fills an empty one, or frees or resizes what is in a full
// one. Sizes run from 1 byte to 4 MiB, in six bands, small ones the most often. Each call is timed by itself with the
// time-stamp counter (ticks.h) and recorded by operation and band; writing to the object is outside of the interval,
// so a page fault counts only if it happens within the call. An interruption by the scheduler within a call counts,
// too: the highest values are the machine's as much as the allocator's.
//
// The first fill of the table is a warm-up and not recorded.
//
//   --slots N (in each thread, default 4096)
// The report's line has a further key: "histograms", a list of {"operation", "band", "count", "max_ns", "counts":
// [[ns, count], …]}; ns is the lowest value of an HdrHistogram bucket (two significant digits).
// extra: <operation>_p50_ns, _p99_ns, _p999_ns, _max_ns over all bands; timer_overhead_ns (subtracted already),
// timer_ns_per_tick.
#include "live.h"
#include "ticks.h"

using namespace workload;

namespace {

struct Band {
  const char* name;
  std::size_t least, most;
  std::uint32_t upto;  // of 65536 picks, those below this and not below the band before
};
constexpr Band kBands[] = {{"1-64", 1, 64, 26214},
                           {"65-512", 65, 512, 45875},
                           {"513-4096", 513, 4096, 58982},
                           {"4097-32768", 4097, 32768, 63570},
                           {"32769-1048576", 32769, 1U << 20, 65208},
                           {">1048576", (1U << 20) + 1, 4U << 20, 65536}};
constexpr int kBandCount = 6;
enum Operation { kMalloc, kFree, kRealloc, kOperations };
constexpr const char* kOperationNames[kOperations] = {"malloc", "free", "realloc"};

struct Histograms {
  Histogram of[kOperations][kBandCount];
};
struct Slot {
  void* object;
  std::size_t bytes;
};

int band_of(std::size_t bytes) {
  int band = 0;
  while (band + 1 < kBandCount && bytes > kBands[band].most) band++;
  return band;
}

std::size_t random_size(Random& random) {
  const std::uint32_t pick = random.below(65536);
  const Band* band = kBands;
  while (pick >= band->upto) band++;
  return random.between(band->least, band->most);
}

// One thread's work and what it has measured.
class Worker {
 public:
  Worker(const Ticker& ticker, Histograms& into, Slot* table, std::uint64_t seed)
      : ticker_(ticker), into_(into), table_(table), random_(seed) {}

  void step(std::uint64_t slots) {
    Slot& slot = table_[random_.below(slots)];
    if (slot.object == nullptr) {
      allocate(slot, random_size(random_));
    } else if (random_.below(8) == 0) {
      resize(slot, random_.between(slot.bytes / 2 + 1, slot.bytes * 2));
    } else {
      release(slot);
    }
  }
  void release(Slot& slot) {
    if (slot.object == nullptr) return;
    check(slot.object, slot.bytes);
    const std::uint64_t begin = begin_ticks();
    std::free(slot.object);
    record(kFree, slot.bytes, begin, end_ticks());
    live.subtract(slot.bytes);
    slot.object = nullptr;
  }

  Live live;

 private:
  void allocate(Slot& slot, std::size_t bytes) {
    const std::uint64_t begin = begin_ticks();
    void* object = std::malloc(bytes);
    record(kMalloc, bytes, begin, end_ticks());
    if (object == nullptr) fail("malloc returned NULL");
    stamp(object, bytes);
    live.add(bytes);
    slot = {object, bytes};
  }
  // To between half and twice the size; counted in the band of the new size.
  void resize(Slot& slot, std::size_t bytes) {
    check(slot.object, slot.bytes);
    unsigned char first = 0;
    std::memcpy(&first, slot.object, 1);
    const std::uint64_t begin = begin_ticks();
    void* object = std::realloc(slot.object, bytes);
    record(kRealloc, bytes, begin, end_ticks());
    if (object == nullptr) fail("realloc returned NULL");
    if (std::memcmp(object, &first, 1) != 0) fail("realloc lost content");
    stamp(object, bytes);
    live.subtract(slot.bytes);
    live.add(bytes);
    slot = {object, bytes};
  }
  void record(Operation operation, std::size_t bytes, std::uint64_t begin, std::uint64_t end) {
    into_.of[operation][band_of(bytes)].record(ticker_.nanoseconds(begin, end));
  }

  const Ticker& ticker_;
  Histograms& into_;
  Slot* table_;
  Random random_;
};

void print_histogram(const Histogram& histogram, const char* operation, const char* band, bool first) {
  std::printf("%s{\"operation\": \"%s\", \"band\": \"%s\", \"count\": %" PRIu64 ", \"max_ns\": %" PRIu64
              ", \"counts\": [",
              first ? "" : ", ", operation, band, histogram.count(), histogram.max());
  const char* separator = "";
  for (std::size_t i = 0; i < Histogram::kBuckets; i++) {
    if (histogram.count_in(i) == 0) continue;
    std::printf("%s[%" PRIu64 ", %" PRIu64 "]", separator, Histogram::lowest_in(i), histogram.count_in(i));
    separator = ", ";
  }
  std::printf("]}");
}

void print_quantiles(const Histograms& histograms, const Ticker& ticker) {
  static Histogram sum[kOperations];
  for (int operation = 0; operation < kOperations; operation++) {
    for (int band = 0; band < kBandCount; band++) sum[operation].add(histograms.of[operation][band]);
    const char* name = kOperationNames[operation];
    std::printf("\"%s_p50_ns\": %" PRIu64 ", \"%s_p99_ns\": %" PRIu64 ", \"%s_p999_ns\": %" PRIu64
                ", \"%s_max_ns\": %" PRIu64 ", ",
                name, sum[operation].quantile(0.5), name, sum[operation].quantile(0.99), name,
                sum[operation].quantile(0.999), name, sum[operation].max());
  }
  std::printf("\"timer_overhead_ns\": %.3f, \"timer_ns_per_tick\": %.6f", ticker.overhead_ns(), ticker.ns_per_tick());
}

// The report's line, with one key more than Report::print() has.
int print(const Common& common, const Report& report, double seconds, const Histograms& histograms,
          const Ticker& ticker) {
  Dl_info info = {};
  const bool found = dladdr(reinterpret_cast<void*>(&std::malloc), &info) != 0 && info.dli_fname != nullptr;
  std::printf("{\"workload\": \"latency\", \"threads\": %u, \"operations\": %" PRIu64
              ", \"seconds\": %.9f, \"peak_live_bytes\": %" PRIu64 ", \"failed_allocations\": %" PRIu64
              ", \"malloc\": \"%s\", \"phases\": [], \"extra\": {",
              common.threads, report.operations, seconds, report.peak_live_bytes, report.failed_allocations,
              found ? info.dli_fname : "");
  print_quantiles(histograms, ticker);
  std::printf("}, \"histograms\": [");
  for (int operation = 0; operation < kOperations; operation++) {
    for (int band = 0; band < kBandCount; band++) {
      print_histogram(histograms.of[operation][band], kOperationNames[operation], kBands[band].name,
                      operation == 0 && band == 0);
    }
  }
  std::printf("]}\n");
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto slots = arguments.integer("slots", 4096, 1, 1U << 22);
  arguments.check();

  Report report("latency", common.threads);
  const Ticker ticker;
  auto* histograms = map_zeroed<Histograms>(common.threads, common.threads <= 16);
  auto* tables = map_zeroed<Slot>(common.threads * slots, true);
  const std::uint64_t steps = (common.scaled(1.2e6) + common.threads - 1) / common.threads;
  std::atomic<std::uint64_t> peak{0};
  const auto body = [&](unsigned index) {
    Slot* table = tables + index * slots;
    Worker worker(ticker, histograms[index], table, common.seed * 4099 + index);
    for (std::uint64_t i = 0; i < 2 * slots; i++) worker.step(slots);
    std::memset(static_cast<void*>(&histograms[index]), 0, sizeof(Histograms));
    for (std::uint64_t i = 0; i < steps; i++) worker.step(slots);
    for (std::uint64_t i = 0; i < slots; i++) worker.release(table[i]);
    peak.fetch_add(worker.live.most, std::memory_order_relaxed);  // relaxed: read after the threads have ended
  };
  const double begin_s = now_s();
  run_threads(common.threads, body);
  const double seconds = now_s() - begin_s;
  for (unsigned i = 1; i < common.threads; i++) {
    for (int operation = 0; operation < kOperations; operation++)
      for (int band = 0; band < kBandCount; band++)
        histograms[0].of[operation][band].add(histograms[i].of[operation][band]);
  }
  report.operations = steps * common.threads;
  report.peak_live_bytes = peak.load(std::memory_order_relaxed);  // relaxed: the threads have ended
  return print(common, report, seconds, histograms[0], ticker);
}
