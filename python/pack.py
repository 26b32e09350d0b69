"""Makes a wheel of a library that cargo has built, without building it again: `python3 python/pack.py LIBRARY FOLDER`.

`pip install ./python` builds the library by itself (maturin). This is for the tests, which have it already, and for taking
a build to another machine.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).parent
PLATFORM = "linux_x86_64" if sys.platform == "linux" else "any"
TAG = f"cp310-abi3-{PLATFORM}"

METADATA = """Metadata-Version: 2.1
Name: krn
Version: {version}
Summary: Krn, a tiling-and-array language for GPU kernels: kernels as Python functions
Requires-Python: >=3.10
"""
WHEEL = """Wheel-Version: 1.0
Generator: krn
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY_POINTS = """[console_scripts]
krn = krn.__main__:main
"""


def pack(library: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Writes the wheel and gives its path."""
    workspace = (HERE.parent / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', workspace, re.MULTILINE)
    if found is None:
        raise SystemExit("the workspace's Cargo.toml says no version")
    version = found.group(1)
    info = f"krn-{version}.dist-info"
    files: dict[str, bytes] = {}
    for file in sorted((HERE / "lib" / "krn").iterdir()):
        if file.suffix in (".py", ".pyi", ".typed"):
            files[f"krn/{file.name}"] = file.read_bytes()
    files["krn/_krn.abi3.so"] = library.read_bytes()
    files[f"{info}/METADATA"] = METADATA.format(version=version).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=TAG).encode()
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    records = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        records.append(f"{name},sha256={digest},{len(content)}")
    files[f"{info}/RECORD"] = "\n".join([*records, f"{info}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"krn-{version}-{TAG}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            # The same bytes each time.
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return wheel


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
