// SPDX-License-Identifier: MIT
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.security.AccessController;
import java.security.PrivilegedAction;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Reflection, method handles, lambdas, streams, proxies, class initialization, privileges. */
public class Calls extends Scenario {
    static final MethodHandle HANDLE;
    static final Method METHOD;

    static {
        try {
            HANDLE = MethodHandles.lookup().findStatic(Calls.class, "step",
                    MethodType.methodType(int.class, int.class));
            METHOD = Calls.class.getDeclaredMethod("reflected", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    static int step(int depth) throws Throwable {
        tick();
        return depth == 0 ? 0 : 1 + (int) HANDLE.invokeExact(depth - 1);
    }

    static int reflected(int depth) throws Throwable {
        tick();
        return depth == 0 ? 0 : 1 + (int) METHOD.invoke(null, depth - 1);
    }

    static int privileged(int depth) {
        tick();
        return depth == 0 ? 0
                : 1 + AccessController.doPrivileged((PrivilegedAction<Integer>) () -> privileged(depth - 1));
    }

    static int composed(int depth) {
        Function<Integer, Integer> f = x -> x;
        for (int i = 0; i < depth; i++) {
            f = f.andThen(x -> x + 1);
        }
        return f.apply(0);
    }

    static class Lazy {
        static final int VALUE = Returns.fibonacci(10);
    }

    void round(long number) throws Throwable {
        check(step(20) == 20, "method handles");
        check(reflected(20) == 20, "reflection");
        check(privileged(15) == 15, "privileges");
        check(composed(15) == 15, "composed");
        int n = (int) (number % 50);
        List<String> s = IntStream.range(0, n).mapToObj(Integer::toString).sorted()
                .map(x -> x + Returns.fibonacci(3)).collect(Collectors.toList());
        check(s.size() == n, "stream");
        Integer[] a = {5, 3, 1, 4, 2};
        Arrays.sort(a, (x, y) -> Returns.leaf(0) * (x - y));
        check(a[0] == 1 && a[4] == 5, "sort");
        Object p = Proxy.newProxyInstance(Calls.class.getClassLoader(),
                new Class<?>[] {Comparable.class}, (o, m, x) -> Returns.fibonacci(6));
        check(((Comparable<?>) p).compareTo(null) == 8, "proxy");
        if (number % 20 == 0) {
            Class<?> lazy = new Loader("Calls$Lazy").loadClass("Calls$Lazy");
            var field = lazy.getDeclaredField("VALUE");
            field.setAccessible(true);
            check(field.getInt(null) == 55, "initialization");
        }
    }
}
