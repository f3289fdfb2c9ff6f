#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# gcc and g++: a C program and a C++ program with heavy headers are compiled, assembled and linked under the library, and
# run under it.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need gcc g++
cat > "$work/program.c" << 'PROGRAM'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  long sum = 0;
  for (int i = 0; i < 100000; ++i) {
    int* p = malloc(sizeof *p * (size_t)(i % 50 + 1));
    p[i % 50] = i;
    sum += p[i % 50];
    free(p);
  }
  printf("%ld\n", sum);
}
PROGRAM
cat > "$work/program.cpp" << 'PROGRAM'
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
int main() {
  std::map<std::string, std::vector<std::shared_ptr<std::string>>> index;
  for (int i = 0; i < 20000; ++i) index["k" + std::to_string(i % 101)].push_back(std::make_shared<std::string>(i % 99, 'x'));
  std::size_t total = 0;
  for (auto& [key, list] : index)
    for (auto& text : list) total += text->size();
  std::cout << total << ' ' << std::regex_replace("a1b22", std::regex("[0-9]+"), "#") << '\n';
}
PROGRAM
traced gcc -O2 -Wall -o "$work/c" "$work/program.c"
was_loaded_by cc1 gcc
traced g++ -O2 -std=c++20 -g -o "$work/cxx" "$work/program.cpp"
was_loaded_by cc1plus ld
equal "the C program's answer" 4999950000 "$(with_library "$work/c")"
equal "the C++ program's answer" "979903 a#b#" "$(with_library "$work/cxx")"
g++ -O2 -std=c++20 -g -c -o "$work/plain.o" "$work/program.cpp"
with_library g++ -O2 -std=c++20 -g -c -o "$work/under.o" "$work/program.cpp"
cmp "$work/plain.o" "$work/under.o" || fail "the compiler writes another object file under the library"
