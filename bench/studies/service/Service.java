// SPDX-License-Identifier: MIT
//
// A service on the Java virtual machine that runs a neural network for each request, as search, ranking and recognition
// services do: Java's own objects live in Java's heap, which is fixed, and the network's tensors come from malloc, by
// ONNX Runtime, whose own cache of memory is off (TensorFlow has none either). Each request is an image of another size,
// so the tensors are, too; the answer is compressed, as answers are (zlib's state is malloc's as well).
//
//   Service MODEL THREADS REQUESTS REST_SECONDS
//
// Says one line of JSON when each part begins: `load` (after twenty requests by one thread and a rest), `rest` (with what
// the load has measured) and `end`. While it rests one small request comes each second. Java's garbage is collected
// before each rest, so that what is resident then is what malloc holds.
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.Deflater;

public final class Service {
  // Sides of the images, in the network's steps of 32 pixels.
  private static final int STEP = 32;
  private static final int SHORTEST = 3;
  private static final int LONGEST = 20;
  private static final int WARM_UP_REQUESTS = 20;
  private static final int WARM_UP_REST_SECONDS = 4;

  private final OrtEnvironment environment = OrtEnvironment.getEnvironment();
  private final OrtSession session;

  private Service(String model) throws OrtException {
    OrtSession.SessionOptions options = new OrtSession.SessionOptions();
    options.setIntraOpNumThreads(1);  // requests run side by side, not one on all processors
    options.setInterOpNumThreads(1);
    options.setCPUArenaAllocator(false);
    options.setMemoryPatternOptimization(false);
    session = environment.createSession(model, options);
  }

  // Something with edges in it; what the network finds there does not matter.
  private static FloatBuffer draw(int height, int width, SplittableRandom random) {
    FloatBuffer pixels =
        ByteBuffer.allocateDirect(4 * 3 * height * width).order(ByteOrder.nativeOrder()).asFloatBuffer();
    int stroke = random.nextInt(2, 12);
    for (int channel = 0; channel < 3; channel++) {
      for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
          pixels.put((x / stroke + y / (stroke * 2)) % 2 == 0 ? 1.0f : -1.0f);
        }
      }
    }
    return pixels.rewind();
  }

  private static int compress(float[][] found) {
    ByteBuffer bytes = ByteBuffer.allocate(found.length * found[0].length);
    for (float[] row : found) {
      for (float value : row) bytes.put((byte) (value * 255));
    }
    Deflater deflater = new Deflater();
    deflater.setInput(bytes.array());
    deflater.finish();
    byte[] answer = new byte[bytes.capacity() + 64];
    int length = deflater.deflate(answer);
    deflater.end();
    return length;
  }

  // Returns nanoseconds. The number of a request decides what it is.
  private long serve(long number, int longest) throws OrtException {
    SplittableRandom random = new SplittableRandom(number);
    int height = STEP * random.nextInt(SHORTEST, longest + 1);
    int width = STEP * random.nextInt(SHORTEST, longest + 1);
    long began = System.nanoTime();
    FloatBuffer pixels = draw(height, width, random);
    String input = session.getInputNames().iterator().next();
    try (OnnxTensor image = OnnxTensor.createTensor(environment, pixels, new long[] {1, 3, height, width});
        OrtSession.Result result = session.run(Map.of(input, image))) {
      float[][][][] found = (float[][][][]) result.get(0).getValue();
      if (compress(found[0][0]) == 0) throw new IllegalStateException("nothing came out of the network");
    }
    return System.nanoTime() - began;
  }

  private void rest(int seconds) throws OrtException, InterruptedException {
    System.gc();
    for (int second = 0; second < seconds; second++) {
      serve(second, SHORTEST);
      Thread.sleep(1000);
    }
  }

  private static void say(String part, String more) {
    System.out.println("{\"part\": \"" + part + "\"" + more + "}");
    System.out.flush();
  }

  private String load(ExecutorService workers, int requests) throws Exception {
    List<Future<Long>> answers = new ArrayList<>();
    long began = System.nanoTime();
    for (int i = 0; i < requests; i++) {
      long number = i;
      answers.add(workers.submit(() -> serve(number, LONGEST)));
    }
    long[] nanoseconds = new long[requests];
    for (int i = 0; i < requests; i++) nanoseconds[i] = answers.get(i).get();
    double seconds = (System.nanoTime() - began) / 1e9;
    Arrays.sort(nanoseconds);
    double p50 = nanoseconds[requests / 2] / 1e6;
    double p99 = nanoseconds[requests - 1 - requests / 100] / 1e6;
    return ", \"requests\": " + requests + ", \"seconds\": " + seconds + ", \"p50_ms\": " + p50 + ", \"p99_ms\": " + p99;
  }

  public static void main(String[] arguments) throws Exception {
    Service service = new Service(arguments[0]);
    ExecutorService workers = Executors.newFixedThreadPool(Integer.parseInt(arguments[1]));
    for (int i = 0; i < WARM_UP_REQUESTS; i++) service.serve(-1 - i, LONGEST);
    service.rest(WARM_UP_REST_SECONDS);
    say("load", "");
    String measured = service.load(workers, Integer.parseInt(arguments[2]));
    say("rest", measured);
    service.rest(Integer.parseInt(arguments[3]));
    say("end", "");
    workers.shutdown();
  }
}
