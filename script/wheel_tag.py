#!/usr/bin/env python3
"""Gives a wheel the tag of the glibc that it needs: wheel_tag.py WHEEL, whose new path it prints.

Built here, a wheel is called linux_x86_64, as if it ran on every Linux. Its modules name the
versions of glibc whose symbols they use, and manylinux_2_35_x86_64 says the newest of them
(PEP 600), so that pip does not install it where it could not be loaded.
"""
import base64
import csv
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile


def newest_glibc(wheel):
    """The minor number of the newest glibc 2.x that a module of the wheel asks for."""
    minor = 0
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not re.search(r"\.so(\.[0-9]+)*$", name):
                continue
            said = subprocess.run(
                ["readelf", "-W", "--version-info", archive.extract(name, folder)],
                capture_output=True, text=True, check=True).stdout
            for version in re.findall(r"Name: GLIBC_(\S+)", said):
                # A library with packed relocations (ABI_DT_RELR) is loaded from 2.36 on.
                number = re.fullmatch(r"2\.(\d+)(\.\d+)*", version.replace("ABI_DT_RELR", "2.36"))
                if not number:
                    sys.exit(f"{name} needs GLIBC_{version}, which is no version of glibc")
                minor = max(minor, int(number[1]))
    if minor == 0:
        sys.exit(f"{wheel.name}: its modules name no version of glibc")
    return minor


def with_tag(wheel, platform):
    """The wheel for that platform in its place: its name, its WHEEL, and what RECORD says of it."""
    name, _ = wheel.stem.rsplit("-", 1)
    new = wheel.with_name(f"{name}-{platform}.whl")
    written = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as out:
        (about,) = [each for each in old.namelist() if each.endswith(".dist-info/WHEEL")]
        words = re.sub(rb"(?m)^(Tag: .*-)[^-\n]+$", rb"\g<1>" + platform.encode(), old.read(about))
        digest = base64.urlsafe_b64encode(hashlib.sha256(words).digest()).rstrip(b"=").decode()
        for item in old.infolist():
            content = old.read(item)
            if item.filename == about:
                content = words
            elif item.filename.endswith(".dist-info/RECORD"):
                rows = [[about, f"sha256={digest}", len(words)] if row[0] == about else row
                        for row in csv.reader(content.decode().splitlines())]
                text = io.StringIO()
                csv.writer(text, lineterminator="\n").writerows(rows)
                content = text.getvalue().encode()
            out.writestr(item, content)
    wheel.unlink()
    return written.rename(new)


def main():
    wheel = pathlib.Path(sys.argv[1])
    machine = re.search(r"-(?:linux|manylinux_\d+_\d+)_(\w+)\.whl$", wheel.name)[1]
    print(with_tag(wheel, f"manylinux_2_{newest_glibc(wheel)}_{machine}"))


if __name__ == "__main__":
    main()
