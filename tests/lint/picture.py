# SPDX-License-Identifier: MIT
"""The picture of the layers in docs/architecture.md has the arrows of the sources, and no others.

picture.py NM OBJECTS...: an arrow runs from a folder of src/ or profiler/ to each folder whose files it includes or whose
functions it calls. No arrow may run upwards in the picture, except those between a folder and itself.
"""
import pathlib
import re
import subprocess
import sys

import layers

DOCUMENT = "docs/architecture.md"
LINE = re.compile(r"^  (\w+)/ *(?:-> ((?:\w+/ ?)+))?(?:  .*)?$", re.M)


def picture_of(text):
    """{folder: the folders that its arrows lead to}, the uppermost first."""
    drawn = re.search(r"^## Layers\n+```\n(.*?)^```", text, re.M | re.S)
    return {match.group(1): set((match.group(2) or "").replace("/", "").split())
            for match in LINE.finditer(drawn.group(1))} if drawn else {}


def folders_of(arrows):
    return {(layers.folder_of(name), layers.folder_of(target)) for name, target in arrows
            if layers.folder_of(name) != layers.folder_of(target)}


def errors_of(picture, arrows, folders, compiled):
    """Calls are known only of folders that were compiled."""
    drawn = {(folder, target) for folder, targets in picture.items() for target in targets}
    order = list(picture)
    errors = [f"{DOCUMENT}: the picture lacks {folder}/" for folder in sorted(folders - set(order))]
    errors += [f"{DOCUMENT}: the picture has {folder}/, which does not exist" for folder in order
               if folder not in folders]
    errors += [f"{DOCUMENT}: the picture lacks {a}/ -> {b}/" for a, b in sorted(arrows - drawn)]
    errors += [f"{DOCUMENT}: {a}/ -> {b}/ is drawn, and no source has it" for a, b in sorted(drawn - arrows)
               if a in compiled and b in compiled]
    errors += [f"{DOCUMENT}: {a}/ -> {b}/ runs upwards" for a, b in sorted(drawn & arrows)
               if a in order and b in order and order.index(a) > order.index(b) and
               (a, b) not in {(layers.folder_of(c), layers.folder_of(d)) for c, d in layers.EXCEPTIONS}]
    return errors


def main():
    nm, *objects = sys.argv[1:]
    texts = layers.texts_of_product()
    out = subprocess.run([nm, "--format=posix", "--extern-only", *objects],
                         check=True, capture_output=True, text=True)
    symbols = [(layers.source_of(path, texts), name, kind) for path, name, kind in layers.parse(out.stdout)]
    arrows = folders_of([*layers.include_arrows(texts), *layers.call_arrows(symbols)])
    compiled = {layers.folder_of(name) for name, _, _ in symbols}
    picture = picture_of(pathlib.Path(DOCUMENT).read_text(encoding="utf-8"))
    if len(picture) < 5:
        sys.exit("the picture was not found; nothing was checked")
    errors = errors_of(picture, arrows, {layers.folder_of(name) for name in texts}, compiled)
    if errors:
        sys.exit("\n".join(errors))
    print(f"{len(picture)} folders, {len(arrows)} arrows")


if __name__ == "__main__":
    main()
