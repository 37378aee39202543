// SPDX-License-Identifier: MIT
//
// Programs that the tests run under the agent. The first argument chooses one. Each prints
// "done" at its end.
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Method;
import java.util.Random;
import javax.management.ObjectName;

public class Scenarios {
    static volatile long sink;

    public static long busy(long ms) {
        long end = System.nanoTime() + ms * 1000000, sum = 0;
        while (System.nanoTime() < end)
            for (int i = 0; i < 1000; i++)
                sum = sum * 31 + i;
        sink += sum;
        return sum;
    }

    public static long deep(int depth, long ms) {
        return depth == 0 ? busy(ms) : deep(depth - 1, ms) + 1;
    }

    static void deepWork(int depth, long ms) {
        long before = samplerTime();
        do
            deep(depth, ms);
        while (!isEnough(before));
    }

    static Thread start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.start();
        return thread;
    }

    // The processor time of the agent's thread; -1 if there is none.
    static long samplerTime() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (long id : threads.getAllThreadIds()) {
            ThreadInfo info = threads.getThreadInfo(id);
            if (info != null && info.getThreadName().equals("incstack sampler"))
                return threads.getThreadCpuTime(id);
        }
        return -1;
    }

    // On a busy machine the agent gets little of the processor. A program has worked enough when
    // the agent has used 20 ms since it began, which is time for more than a hundred ticks.
    static boolean isEnough(long before) {
        long now = samplerTime();
        return now < 0 || now - before > 20000000;
    }

    // Two busy threads, one that waits all the time.
    static void work(long ms) throws Exception {
        long before = samplerTime();
        Object lock = new Object();
        Thread idle = start("idle \u00e4", () -> {
            synchronized (lock) {
                try {
                    lock.wait();
                } catch (InterruptedException e) {
                    sink++;
                }
            }
        });
        while (idle.getState() != Thread.State.WAITING)
            Thread.yield();
        do
            workOnce(ms);
        while (!isEnough(before));
        idle.interrupt();
        idle.join();
    }

    static void workOnce(long ms) throws Exception {
        Thread a = start("worker A", () -> busy(ms));
        Thread b = start("worker B", () -> deep(100, ms));
        a.join();
        b.join();
    }

    // Each call chooses by random numbers who is called next, so that almost no two stacks are equal.
    static long one(int depth, Random random) {
        return depth == 0 ? busy(0) : (random.nextBoolean() ? two(depth - 1, random) : one(depth - 1, random)) + 1;
    }

    static long two(int depth, Random random) {
        return depth == 0 ? busy(0) : (random.nextBoolean() ? one(depth - 1, random) : two(depth - 1, random)) + 1;
    }

    static void varied(long ms) {
        Random random = new Random(1);
        long before = samplerTime();
        do
            for (long end = System.nanoTime() + ms * 1000000; System.nanoTime() < end;)
                one(1000, random);
        while (!isEnough(before));
    }

    static void threads(int count) throws Exception {
        for (int i = 0; i < count; i += 8) {
            Thread[] some = new Thread[8];
            for (int t = 0; t < some.length; t++)
                some[t] = start("short " + (i + t), () -> deep(20, 0));
            for (Thread thread : some)
                thread.join();
        }
    }

    // Each class is loaded by a loader of its own, runs, and is dropped.
    public static class Loaded implements Runnable {
        public void run() {
            deep(5, 5);
        }
    }

    static class OwnLoader extends ClassLoader {
        private final byte[] code;

        OwnLoader(byte[] code) {
            super(Scenarios.class.getClassLoader());
            this.code = code;
        }

        Class<?> define() {
            return defineClass("Scenarios$Loaded", code, 0, code.length);
        }
    }

    static void unload(int count, String agent) throws Exception {
        ByteArrayOutputStream code = new ByteArrayOutputStream();
        try (InputStream in = Scenarios.class.getResourceAsStream("Scenarios$Loaded.class")) {
            in.transferTo(code);
        }
        long before = samplerTime();
        for (int i = 0; i < count || !isEnough(before); i++) {
            Class<?> loaded = new OwnLoader(code.toByteArray()).define();
            ((Runnable) loaded.getDeclaredConstructor().newInstance()).run();
            if (i % 8 == 7) {
                awaitNames(agent);
                System.gc();
            }
        }
        System.out.println("unloaded="
                + ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount());
    }

    // ---- a class that is redefined while its methods run -----------------------------------

    static Instrumentation instrumentation;

    public static void premain(String options, Instrumentation given) {
        instrumentation = given;
    }

    // A method that refers to the constant becomes obsolete when that changes.
    public static class Changing {
        static long old(long ms, Runnable change) {
            int constant = 0x12345678;
            change.run();
            return busy(ms) + constant;
        }
    }

    static void redefine(int count, String agent) throws Exception {
        byte[] code = Scenarios.class.getResourceAsStream("Scenarios$Changing.class").readAllBytes();
        int at = 0;
        while (code[at] != 3 || code[at + 1] != 0x12 || code[at + 2] != 0x34 || code[at + 3] != 0x56)
            at++;
        int place = at + 4;
        long before = samplerTime();
        for (int i = 0; i < count || !isEnough(before); i++) {
            Changing.old(20 + i % 5 * 10, () -> {
                try {
                    code[place]++;
                    instrumentation.redefineClasses(new ClassDefinition(Changing.class, code));
                } catch (ReflectiveOperationException | java.lang.instrument.UnmodifiableClassException e) {
                    throw new IllegalStateException(e);
                }
            });
            awaitNames(agent); // the next redefinition frees the old version
        }
    }

    // By reflection, because the oldest JDK that compiles this has none.
    static void virtual(int count) throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        long before = samplerTime();
        do
            virtualOnce(start, count);
        while (!isEnough(before));
    }

    static void virtualOnce(Method start, int count) throws Exception {
        Thread[] all = new Thread[count];
        for (int i = 0; i < count; i++)
            all[i] = (Thread) start.invoke(null, (Runnable) () -> {
                for (int k = 0; k < 5; k++) {
                    deep(30, 1);
                    try {
                        Thread.sleep(1);
                    } catch (InterruptedException e) {
                        sink++;
                    }
                }
            });
        for (Thread thread : all)
            thread.join();
    }

    // ---- loading the agent into the running JVM, as jcmd does -----------------------------

    static void load(String agent, String options) throws Exception {
        ManagementFactory.getPlatformMBeanServer().invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"), "jvmtiAgentLoad",
                new Object[] {new String[] {agent, "\"" + options + "\""}},
                new String[] {String[].class.getName()});
    }

    // The agent dumps between two ticks. By then it has named the methods of each stack that it has walked.
    static void awaitNames(String agent) throws Exception {
        load(agent, "dump");
    }

    // attach AGENT OPTIONS MS OPTIONS MS ...: loads, works, loads, works ...
    static void attach(String[] args) throws Exception {
        for (int i = 2; i + 1 < args.length; i += 2) {
            load(args[1], args[i]);
            work(Long.parseLong(args[i + 1]));
        }
    }

    static final String[] WORDS = {"interval", "mode", "file", "format", "duration", "split",
        "samples", "depth", "threads", "waiting", "lines", "stats", "check", "start", "stop",
        "dump", "next", "status", "=", "=", "=", "=", "=", ",", ",", ",", ",", ",", "1ms", "10ms",
        "100us", "1", "5", "partial", "jvmti", "incremental", "fuzz.html", "fuzz.pb.gz",
        "fuzz.folded", "fuzz.json", "%p", "%", "no", "yes", "pprof", "html", "\u00e4", "x"};

    static final String[] WHOLE = {"start,interval=1ms,file=fuzz-%n.folded",
        "interval=500us,mode=jvmti,file=fuzz.html,threads,waiting", "stop", "dump", "next",
        "interval=1ms,duration=2ms,file=fuzz.pb.gz,check", "split=1ms,interval=1ms,file=fuzz.json"};

    // Nobody knows which of these strings are valid.
    static void fuzz(String agent, long seed, int count) throws Exception {
        Random random = new Random(seed);
        for (int i = 0; i < count; i++) {
            StringBuilder options = new StringBuilder();
            if (random.nextInt(3) == 0)
                options.append(WHOLE[random.nextInt(WHOLE.length)]).append(',');
            for (int k = random.nextInt(8); k > 0; k--)
                options.append(WORDS[random.nextInt(WORDS.length)]);
            load(agent, options.toString());
            deep(20, 1);
        }
        load(agent, "stop");
    }

    static void begin(long ms) throws Exception {
        System.out.println("begun");
        work(ms);
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
        case "work": work(Long.parseLong(args[1])); break;
        case "begin": begin(Long.parseLong(args[1])); break;
        case "deep": deepWork(Integer.parseInt(args[1]), Long.parseLong(args[2])); break;
        case "varied": varied(Long.parseLong(args[1])); break;
        case "threads": threads(Integer.parseInt(args[1])); break;
        case "unload": unload(Integer.parseInt(args[1]), args[2]); break;
        case "redefine": redefine(Integer.parseInt(args[1]), args[2]); break;
        case "virtual": virtual(Integer.parseInt(args[1])); break;
        case "attach": attach(args); break;
        case "fuzz": fuzz(args[1], Long.parseLong(args[2]), Integer.parseInt(args[3])); break;
        default: throw new IllegalArgumentException(args[0]);
        }
        System.out.println("done");
    }
}
