#!/usr/bin/env python3
"""Packs a built program for PyPI, as a wheel, and for npm, as a tarball. It publishes nothing.

usage: packaging/pack.py PROGRAM PLATFORM FOLDER

PROGRAM is a file that was built, such as target/dist/threadfold-x86_64-unknown-linux-musl. PLATFORM is the
tag of the wheel, such as linux_x86_64, or several with a dot between them, such as
manylinux_2_17_x86_64.musllinux_1_1_x86_64 for a static program. Both packages hold the program and nothing
else, so they need neither Rust nor a compiler.
"""

import base64
import gzip
import hashlib
import io
import json
import pathlib
import re
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "Keeps the threads of LLM agents inside the model's context window"
# What npm calls the processors of wheels.
CPUS = {"x86_64": "x64", "aarch64": "arm64"}


def version():
    manifest = (ROOT / "crates/threadfold-cli/Cargo.toml").read_text()
    return re.search(r'^version = "(.+)"$', manifest, re.M)[1]


def wheel(program, platform, folder):
    """A wheel whose only file is a script of the environment: pip puts it on the path."""
    name = f"threadfold-{version()}"
    about = f"Metadata-Version: 2.1\nName: threadfold\nVersion: {version()}\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n"
    tag = "Wheel-Version: 1.0\nGenerator: threadfold\nRoot-Is-Purelib: false\n"
    tag += "".join(f"Tag: py3-none-{one}\n" for one in platform.split("."))
    files = [
        (f"{name}.data/scripts/threadfold", program, 0o755),
        (f"{name}.dist-info/METADATA", about.encode(), 0o644),
        (f"{name}.dist-info/WHEEL", tag.encode(), 0o644),
    ]
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"]:
        files.append((f"{name}.dist-info/licenses/{licence}", (ROOT / licence).read_bytes(), 0o644))
    record = f"{name}.dist-info/RECORD"
    lines = [f"{path},sha256={digest(content)},{len(content)}" for path, content, _ in files]
    files.append((record, "\n".join([*lines, f"{record},,", ""]).encode(), 0o644))
    path = folder / f"{name}-py3-none-{platform}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for inside, content, mode in files:
            entry = zipfile.ZipInfo(inside)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)
    return path


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def tarball(program, platform, folder):
    """A package of npm whose command is the program itself."""
    cpu = next((cpu for name, cpu in CPUS.items() if platform.endswith(name)), None)
    if cpu is None:
        sys.exit(f"{platform}: expected a platform that ends with one of {', '.join(CPUS)}")
    about = {
        "name": "threadfold", "version": version(), "description": SUMMARY, "license": "MIT OR Apache-2.0",
        "bin": {"threadfold": "bin/threadfold"}, "os": ["linux"], "cpu": [cpu],
    }
    files = [
        ("package/package.json", json.dumps(about, indent=2).encode(), 0o644),
        ("package/bin/threadfold", program, 0o755),
    ]
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"]:
        files.append((f"package/{licence}", (ROOT / licence).read_bytes(), 0o644))
    path = folder / f"threadfold-{version()}-linux-{cpu}.tgz"
    # Without times, so that the same program gives the same package.
    with open(path, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped:
        with tarfile.open(fileobj=zipped, mode="w") as packed:
            for inside, content, mode in files:
                entry = tarfile.TarInfo(inside)
                entry.size, entry.mode = len(content), mode
                packed.addfile(entry, io.BytesIO(content))
    return path


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, platform, folder = pathlib.Path(sys.argv[1]).read_bytes(), sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    for pack in [wheel, tarball]:
        print(pack(program, platform, folder))


main()
