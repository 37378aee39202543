// SPDX-License-Identifier: MIT
import java.io.InputStream;

/** Loads classes with a given prefix anew; they are unloaded with it. */
public class Loader extends ClassLoader {
    private final String prefix;

    Loader(String prefix) {
        super(Loader.class.getClassLoader());
        this.prefix = prefix;
    }

    @Override
    public Class<?> loadClass(String name) throws ClassNotFoundException {
        if (!name.startsWith(prefix)) {
            return super.loadClass(name);
        }
        Class<?> known = findLoadedClass(name);
        if (known != null) {
            return known;
        }
        try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
            byte[] b = in.readAllBytes();
            return defineClass(name, b, 0, b.length);
        } catch (java.io.IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }
}
