# SPDX-License-Identifier: GPL-2.0-or-later
"""embed.py OUTPUT FILE…: makes a C file with the page: all style sheets, all scripts and the body as arrays.

The page's policy allows the scripts and styles with these hashes and no others, so that nothing that comes from the
recording can run, whatever mistake a writer makes.
"""
import base64
import hashlib
import sys
from pathlib import Path


def array(name, data):
    lines = [", ".join(str(byte) for byte in data[at:at + 24]) for at in range(0, len(data), 24)]
    return (f"const unsigned char {name}[] = {{\n\t" + ",\n\t".join(lines) + f"\n}};\n"
            f"const size_t {name}_size = sizeof({name});\n")


def without_licence(text):
    """The page says once what its licence is."""
    return "".join(line for line in text.splitlines(True) if "SPDX-License-Identifier" not in line)


def together(paths, suffix):
    return "".join(without_licence(path.read_text()) for path in paths if path.suffix == suffix)


def allowed(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main():
    output, paths = Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]]
    script = "\n'use strict';\n(() => {\n" + together(paths, ".js") + "})();\n"
    style = "\n" + together(paths, ".css")
    policy = (f"default-src 'none'; script-src {allowed(script)}; style-src {allowed(style)}; base-uri 'none'; "
              "form-action 'none'")
    parts = {"html_policy": policy, "html_style": style, "html_script": script, "html_body": together(paths, ".html")}
    output.write_text("#include <stddef.h>\n" + "".join(array(name, text.encode()) for name, text in parts.items()))


main()
