#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# java: the virtual machine with its compiler and collector threads, native buffers and deflaters (which live on malloc).
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need java
cat > "$work/Program.java" << 'PROGRAM'
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Program {
  static int work(int seed) throws Exception {
    Map<String, List<byte[]>> map = new HashMap<>();
    int total = 0;
    for (int i = 0; i < 20000; ++i) {
      map.computeIfAbsent("key " + (i * 7919 + seed) % 997, k -> new ArrayList<>()).add(new byte[i % 500]);
      if (i % 100 == 0) {
        ByteBuffer direct = ByteBuffer.allocateDirect(i + 1);
        direct.put(i, (byte) 7);
        total += direct.get(i);
        Deflater deflater = new Deflater();
        deflater.setInput(new byte[10000]);
        deflater.finish();
        byte[] out = new byte[10000];
        int length = deflater.deflate(out);
        deflater.end();
        Inflater inflater = new Inflater();
        inflater.setInput(out, 0, length);
        total += inflater.inflate(new byte[10000]) / 10000;
        inflater.end();
      }
    }
    return total + map.size();
  }

  public static void main(String[] arguments) throws Exception {
    if (!Files.readString(Path.of("/proc/self/maps")).contains(arguments[0])) throw new Error("not loaded");
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Integer>> answers = new ArrayList<>();
    for (int i = 0; i < 8; ++i) {
      int seed = i;
      answers.add(pool.submit(() -> work(seed)));
    }
    System.gc();
    int sum = 0;
    for (Future<Integer> answer : answers) sum += answer.get();
    pool.shutdown();
    System.out.println(sum);
  }
}
PROGRAM
with_library java -version 2> "$work/version" || fail "java -version: $(cat "$work/version")"
grep -qi 'version' "$work/version" || fail "java -version says: $(cat "$work/version")"
equal "java's answer" $((8 * (200 * 8 + 997))) \
  "$(with_library java -Xmx256m "$work/Program.java" "$library" 2> "$work/errors" || cat "$work/errors")"
