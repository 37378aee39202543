// SPDX-License-Identifier: MIT
import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;

/** A class that is redefined while its methods run: their frames are of several versions. */
public class Redefined extends Scenario {
    static {
        System.load(System.getProperty("natives"));
    }

    /** Loaded by a loader of its own. */
    public static class Changing {
        static int version() {
            return 0x12345678;
        }

        /** Refers to the constant, too, so that a version of this method ends with it. */
        public static int go(int depth, Runnable each) {
            int mine = 0x12345678;
            tick();
            if (depth % 8 == 7) {
                each.run();
            }
            int below = depth == 0 ? 0 : go(depth - 1, each);
            return below + (mine == version() ? 1 : 2);
        }
    }

    static native boolean redefine(Class<?> old, byte[] code);

    static final String NAME = Redefined.class.getName() + "$Changing";
    static final byte[] CODE = code();
    static final int PLACE = place();

    static byte[] code() {
        try (InputStream in = Redefined.class.getResourceAsStream(NAME + ".class")) {
            return in.readAllBytes();
        } catch (java.io.IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Where the constant is, behind its tag. */
    static int place() {
        for (int i = 0; i + 5 <= CODE.length; i++) {
            if (CODE[i] == 3 && ByteBuffer.wrap(CODE, i + 1, 4).getInt() == 0x12345678) {
                return i + 1;
            }
        }
        throw new IllegalStateException("no constant");
    }

    Class<?> changing;
    Method go;
    int version;
    boolean isQuiet;

    void change() {
        if (!isQuiet) {
            byte[] code = CODE.clone();
            ByteBuffer.wrap(code).putInt(PLACE, ++version);
            check(redefine(changing, code), "redefinition");
        }
    }

    long atLeast() {
        return 100;
    }

    void round(long number) throws Throwable {
        if (number % 50 == 0) {
            changing = new Loader(NAME).loadClass(NAME);
            go = changing.getMethod("go", int.class, Runnable.class);
        }
        isQuiet = number % 5 != 0;
        int depth = 24 + (int) (number % 17);
        int result = (int) go.invoke(null, depth, (Runnable) this::change);
        // All frames but the youngest ones are of an older version than the one that they call.
        check(result == depth + 1 + (isQuiet ? 0 : depth - 6), depth + " frames gave " + result);
    }
}
