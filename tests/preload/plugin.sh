#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A plug-in that allocates in its constructors is opened and closed a hundred times, from changing threads: memory it took at
# load is freed at unload or by the program afterwards, and a thread that it started may outlive the close.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need gcc g++
cat > "$work/plugin.cpp" << 'PROGRAM'
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
static std::map<int, std::string> table = [] {
  std::map<int, std::string> made;
  for (int i = 0; i < 500; ++i) made[i] = std::string(static_cast<std::size_t>(i % 200), 'p');
  return made;
}();
static thread_local std::vector<int> per_thread(1000, 7);
extern "C" char* plugin_gift(int i) {
  per_thread.push_back(i);
  char* gift = static_cast<char*>(std::malloc(1000));
  for (int k = 0; k < 1000; ++k) gift[k] = static_cast<char>(table[i % 500].size() + per_thread[0]);
  return gift;
}
PROGRAM
cat > "$work/host.c" << 'PROGRAM'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static const char* path;
static char* gift[200];
static void* use_plugin(void* argument) {
  int i = *(int*)argument;
  void* plugin = dlopen(path, RTLD_NOW);
  if (plugin == NULL) { puts(dlerror()); exit(1); }
  char* (*give)(int) = (char* (*)(int))dlsym(plugin, "plugin_gift");
  gift[i] = give(i);
  if (dlclose(plugin) != 0) exit(2);
  return NULL;
}
int main(int argc, char** argv) {
  path = argv[argc - 1];
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    if (i % 2 == 0) { use_plugin(&i); continue; }
    if (pthread_create(&thread, NULL, use_plugin, &i) != 0) exit(3);
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 1000; ++k) if (gift[i][k] != (char)(i % 200 + 7)) exit(4);
    free(gift[i]);
  }
  puts("all right");
}
PROGRAM
g++ -O1 -std=c++17 -fPIC -shared -o "$work/plugin.so" "$work/plugin.cpp"
gcc -O1 -o "$work/host" "$work/host.c" -ldl -pthread
run() {
  equal "the host's answer" "all right" "$(traced "$work/host" "$work/plugin.so")"
  was_loaded_by host
}
with_both_front_ends run
