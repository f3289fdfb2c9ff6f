// SPDX-License-Identifier: MIT
//
// Words of a text in Java, from one source file that `java` compiles in memory. Java's objects lie in a heap of its own;
// malloc serves the virtual machine: the two compilers' arenas, class tables, the collector's marks and zlib.
//
//   java Words.java corpus.txt
//
// Each part checks its own result and ends the program with 1 if it is wrong.

import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public final class Words {
  private static final int PIECE = 8192;

  private static void check(boolean right, String what) {
    if (right) return;
    System.err.println("Words.java: " + what);
    System.exit(1);
  }

  private static byte[] deflated(byte[] bytes, int at) {
    Deflater deflater = new Deflater(1);
    deflater.setInput(bytes, at, Math.min(PIECE, bytes.length - at));
    deflater.finish();
    byte[] out = new byte[2 * PIECE];
    int size = deflater.deflate(out);
    deflater.end();
    return Arrays.copyOf(out, size);
  }

  private static byte[] inflated(byte[] piece) throws Exception {
    Inflater inflater = new Inflater();
    inflater.setInput(piece);
    byte[] out = new byte[PIECE];
    int size = inflater.inflate(out);
    inflater.end();
    return Arrays.copyOf(out, size);
  }

  public static void main(String[] arguments) throws Exception {
    String text = Files.readString(Path.of(arguments[0]));
    for (int round = 0; round < 6; round++) {
      String[] words = text.split("\\s+");
      Map<String, Long> counts =
          Arrays.stream(words).collect(Collectors.groupingBy(w -> w, TreeMap::new, Collectors.counting()));
      List<Map.Entry<String, Long>> ranked = new ArrayList<>(counts.entrySet());
      ranked.sort(Map.Entry.<String, Long>comparingByValue(Comparator.reverseOrder()));
      long sum = ranked.stream().mapToLong(Map.Entry::getValue).sum();
      check(sum == words.length, "words were lost in sorting");

      byte[] bytes = text.getBytes();
      ByteArrayOutputStream back = new ByteArrayOutputStream();
      for (int at = 0; at < bytes.length; at += PIECE) back.write(inflated(deflated(bytes, at)));
      check(Arrays.equals(back.toByteArray(), bytes), "the text changed on its way");
    }
    System.out.println(text.length());
  }
}
