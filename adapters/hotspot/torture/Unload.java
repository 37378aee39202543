// SPDX-License-Identifier: MIT

/** Classes that are loaded, run for a while, and are unloaded. */
public class Unload extends Scenario {
    static byte[][] garbage = new byte[64][];

    long atLeast() {
        return 100;
    }

    void round(long number) throws Throwable {
        Class<?> c = new Loader("Returns").loadClass("Returns");
        var m = c.getDeclaredMethod("fibonacci", int.class);
        m.setAccessible(true);
        check((int) m.invoke(null, 16) == 987, "fibonacci");
        for (int i = 0; i < 32; i++) {
            garbage[(int) ((number + i) % garbage.length)] = new byte[1 << 14];
        }
        if (number % 50 == 0) {
            System.gc();
        }
    }
}
