// SPDX-License-Identifier: MIT
//
// cache-sharing: every thread makes one small object, writes it many times, frees it, and again. If two threads'
// objects lie on one cache line, the line travels between the CPUs at every write and the program is several times
// slower.
//
// Imitates cache-thrash and cache-scratch of Berger, McKinley, Blumofe and Wilson, "Hoard: a scalable memory allocator
// for multithreaded applications", ASPLOS 2000:
// - thrash (active false sharing): does malloc hand parts of one line to threads that ask at the same time?
// - scratch (passive false sharing): the main thread makes the first objects, side by side, and each thread frees its
//   one at once: does free let the next malloc of that thread have the shared line again?
//
// The sum of the writes is fixed and divided among the threads; with one thread nothing is shared, which is the figure
// to compare with. Each byte counts its writes, and the counts are looked at: a line that two objects share is slow,
// a byte that two objects share ends the program.
//
//   --mode thrash|scratch  --size BYTES (of an object, default 8)  --rewrites N (of an object, default 20000)
#include "many_threads.h"

using namespace workload;

namespace {

// Adds 1 to every byte, `rewrites` times, in memory and not in a register.
void write(const Object& object, std::uint64_t rewrites) {
  auto* bytes = static_cast<volatile unsigned char*>(object.at);
  for (std::size_t i = 0; i < object.bytes; i++) bytes[i] = 0;
  for (std::uint64_t n = 0; n < rewrites; n++) {
    for (std::size_t i = 0; i < object.bytes; i++) bytes[i] = static_cast<unsigned char>(bytes[i] + 1);
  }
  for (std::size_t i = 0; i < object.bytes; i++) {
    if (bytes[i] != static_cast<unsigned char>(rewrites)) fail("another thread wrote into an object");
  }
  stamp(object.at, object.bytes);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const bool scratch = choice(arguments, "mode", {"thrash", "scratch"}) == 1;
  const auto bytes = arguments.integer("size", 8, 1, 4096);
  const auto rewrites = arguments.integer("rewrites", 20000, 1, 1U << 30);
  arguments.check();

  Report report(scratch ? "cache-scratch" : "cache-thrash", common.threads);
  const std::uint64_t objects = common.scaled(12000);
  LiveBytes live(common.threads);
  Barrier start(common.threads);
  {
    LiveCounter main_counter(live);
    auto* first = make_table<Object>(common.threads, main_counter);
    for (unsigned i = 0; i < common.threads && scratch; i++) first[i] = make_object(bytes, main_counter);
    main_counter.settle();
    const auto body = [&](unsigned index) {
      LiveCounter counter(live);
      start.wait();
      if (scratch) drop_object(first[index], counter);
      const std::uint64_t mine = share(objects, index, common.threads);
      for (std::uint64_t i = 0; i < mine; i++) {
        Object object = make_object(bytes, counter);
        write(object, rewrites);
        drop_object(object, counter);
      }
    };
    report.start();
    run_threads(common.threads, body);
    report.stop();
    drop_table(first, common.threads, main_counter);
  }
  live.finish(report, objects + (scratch ? common.threads : 0));
  return report.print();
}
