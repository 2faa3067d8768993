"""The hostile programs: their headers, and one static binary that holds all those written in C."""
import hashlib
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
LANGUAGE = {".py": "python", ".sh": "bash", ".js": "javascript", ".c": "c"}
KEYS = {"threat", "attack", "expect", "without-cgroup", "control", "limits", "needs", "bare", "stages", "repeat", "twice", "probe",
        "run", "template", "undefended"}
HEADER_LINE = re.compile(r"^(?:/\*|//|#| \*)?\s*([a-z-]+):\s*(.*?)\s*$")


class Program:
    def __init__(self, path):
        self.path = path
        self.name = path.stem
        self.header = read_header(path)
        self.language = LANGUAGE[path.suffix]
        section = ""
        self.threats = []
        for word in self.header["threat"].split():
            if re.match(r"\d+\.\d+-", word):
                section = word.split("-")[0]
            else:
                word = f"{section}-{word}"
            self.threats.append(word)
        self.controls = [c for c in self.header.get("control", "").split() if c != "-"]
        self.needs = self.header.get("needs", "").split()
        self.compiled = self.language == "c" and self.header.get("run") != "c"

    def get(self, key, default=""):
        return self.header.get(key, default)


def read_header(path):
    header = {}
    for line in path.read_text().splitlines():
        match = HEADER_LINE.match(line)
        if not match or match[1] not in KEYS:
            break
        if match[1] in header:
            raise ValueError(f"{path.name}: '{match[1]}' is given twice")
        header[match[1]] = match[2]
    for key in ("threat", "attack", "expect"):
        if key not in header:
            raise ValueError(f"{path.name}: the header has no '{key}:'")
    return header


def load():
    return [Program(path) for path in sorted(PROGRAMS.iterdir()) if path.suffix in LANGUAGE]


def threat_bullets():
    """The catalogue: (id, text, reason why no program is possible or None)."""
    bullets = []
    for line in (HERE / "threats.yaml").read_text().splitlines():
        match = re.match(r'^"?([0-9.]+-[a-z0-9-]+)"?:\s*(.*)$', line)
        if match:
            text, _, reason = match[2].partition(" | untested: ")
            bullets.append((match[1], text, reason or None))
    return bullets


def build(programs):
    """Compiles the C programs into one static binary that takes the program's name first. Kept by content."""
    sources = [p for p in programs if p.compiled]
    digest = hashlib.sha256((PROGRAMS / "attack.h").read_bytes())
    for program in sources:
        digest.update(program.path.read_bytes())
    near = HERE.parent.parent / "build"
    keep = near if near.is_dir() and os.access(near, os.W_OK) else Path(tempfile.gettempdir())
    place = keep / f"contain-programs-{os.getuid()}-{digest.hexdigest()[:16]}"
    binary = place / "prog"
    if binary.exists() and place.stat().st_uid == os.getuid():
        return binary
    with tempfile.TemporaryDirectory() as work:
        def compile_one(program):
            entry = f"attack_{program.name}"
            target = f"{work}/{program.name}.o"
            subprocess.run(["gcc", "-std=gnu17", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wno-unused-result", "-Wno-format-truncation", f"-Dmain={entry}", "-c", str(program.path),
                            "-o", target], check=True)
            return target

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compile_one, sources))
        lines = ["#include <string.h>"]
        lines += [f"int attack_{p.name}(int, char **, char **);" for p in sources]
        lines += ["int main(int argc, char **argv, char **envp) {", "if (argc < 2) return 125;"]
        lines += [f'if (!strcmp(argv[1], "{p.name}")) return attack_{p.name}(argc - 1, argv + 1, envp);' for p in sources]
        lines += ["return 125; }"]
        Path(work, "main.c").write_text("\n".join(lines))
        subprocess.run(["gcc", "-static", "-pthread", "-o", f"{work}/prog", f"{work}/main.c", *objects], check=True)
        place.mkdir(mode=0o755, exist_ok=True)
        os.chmod(f"{work}/prog", 0o755)
        subprocess.run(["cp", f"{work}/prog", str(binary) + ".new"], check=True)
        os.rename(str(binary) + ".new", binary)
    return binary
