# SPDX-License-Identifier: MIT
"""Builds the extension module by the project's own CMake files, which also know the libraries that it needs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parents[2]
OFF = ("TESTS", "BENCH", "EXAMPLES", "TOOL", "JVM", "JAVA", "NATIVE", "INSTALL")


def version():
    """The version of the library, whose header has it."""
    text = (ROOT / "include/incstack/version.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"define INCSTACK_VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


def check():
    """Says in one line what is missing."""
    if not (ROOT / "src/heap").is_dir():
        sys.exit("incstack: install from the folder adapters/cpython of the project: the module is built with the "
                 "sources of the library")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit("incstack: this is a free-threaded Python; incstack needs a Python with the GIL")
    if not shutil.which("cmake"):
        sys.exit("incstack: cmake is missing: run scripts/setup of the project, which installs what the build needs")
    header = pathlib.Path(sysconfig.get_paths()["include"], "Python.h")
    if not header.is_file():
        sys.exit(f"incstack: {header} is missing: install the headers of this Python (Debian: python3-dev)")


class CMakeBuild(build_ext):
    """Builds the target incstack_python for this Python, and puts the result where setuptools expects it."""

    def build_extension(self, ext):
        check()
        build = pathlib.Path(self.build_temp).resolve()
        build.mkdir(parents=True, exist_ok=True)
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(["cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                        "-DINCSTACK_PROFILE=ON", "-DINCSTACK_PYTHON=ON", *(f"-DINCSTACK_{name}=OFF" for name in OFF),
                        f"-DPython3_EXECUTABLE={sys.executable}",
                        f"-DPython3_INCLUDE_DIR={sysconfig.get_paths()['include']}"], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "incstack_python", "-j", str(os.cpu_count() or 1)],
                       check=True)
        made = next((build / "python/incstack").glob("_incstack*.so"))
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made, target)


setup(version=version(), ext_modules=[Extension("incstack._incstack", sources=[])],
      cmdclass={"build_ext": CMakeBuild})
