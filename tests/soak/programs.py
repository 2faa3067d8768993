"""What the soak runs: small programs that end in every way a program can end, and what each must give."""
import shutil

CELL_PATH = "/usr/local/bin:/usr/bin:/bin"
TOOLS = {"python": "python3", "javascript": "node", "r": "Rscript", "lua": "lua5.4", "typescript": "tsc", "c": "gcc", "cpp": "g++",
         "java": "javac", "rust": "rustc"}

HELLO = {
    "python": "print(6 * 7)",
    "javascript": "console.log(6 * 7)",
    "ruby": "puts 6 * 7",
    "bash": "echo $((6 * 7))",
    "perl": 'print 6 * 7, "\\n"',
    "php": '<?php echo 6 * 7, "\\n";',
    "lua": "print(6 * 7)",
    "c": '#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); }',
    "cpp": "#include <iostream>\nint main() { std::cout << 6 * 7 << std::endl; }",
    "go": 'package main\nimport "fmt"\nfunc main() { fmt.Println(6 * 7) }',
    "rust": 'fn main() { println!("{}", 6 * 7); }',
}
# Those whose start alone takes longer than everything else together: one in many runs.
SLOW = {
    "java": "public class Main { public static void main(String[] a) { System.out.println(6 * 7); } }",
    "r": 'cat(6 * 7, "\\n", sep = "")',
    "octave": "disp(6 * 7)",
    "typescript": "const seven: number = 7; console.log(6 * seven);",
}
OTHERS = [
    ("python", "import sys; sys.exit(3)", ("nonzero_exit", "")),
    ("python", "import os; os.kill(os.getpid(), 11)", ("signaled", "")),
    ("python", "1 / 0", ("nonzero_exit", "")),
    ("python", "def f(:", ("nonzero_exit", "")),
    ("python", "import os, time\nfor _ in range(5):\n    if os.fork() == 0: os.setsid(); time.sleep(30)\nprint(1)", ("ok", "1\n")),
    ("python", "for n in range(200): open(f'/tmp/{n}', 'w').write('x' * 999)\nprint(1)", ("ok", "1\n")),
    ("python", "import os, threading\nfor _ in range(8): threading.Thread(target=os.write, args=(1, b'1\\n')).start()", ("ok", "1\n" * 8)),
    ("python", "import socket\ns = socket.create_server(('127.0.0.1', 8080))\nsocket.create_connection(('127.0.0.1', 8080))\nprint(1)",
     ("ok", "1\n")),
    ("python", "import socket\nfor n in range(50): s = socket.socket(socket.AF_UNIX); s.bind(f'\\0{n}')\nprint(1)", ("ok", "1\n")),
    ("bash", "sleep 30 & disown; kill -9 $$", ("signaled", "")),
    ("bash", "for i in $(seq 20); do echo x >$i; done; ls | wc -l", ("ok", "21\n")),
    ("javascript", "process.exit(3)", ("nonzero_exit", "")),
    ("javascript", "throw new Error('x')", ("nonzero_exit", "")),
    ("ruby", "exit 3", ("nonzero_exit", "")),
]


def installed():
    return [language for language in (*HELLO, *SLOW) if shutil.which(TOOLS.get(language, language), path=CELL_PATH)]


def mixed(languages):
    """(language, code, (status, stdout)), each as often as it is to be chosen."""
    often = [(language, HELLO[language], ("ok", "42\n")) for language in languages if language in HELLO]
    slow = [(language, SLOW[language], ("ok", "42\n")) for language in languages if language in SLOW]
    others = [row for row in OTHERS if row[0] in languages]
    fast = [row for row in often if row[0] in ("python", "bash", "perl", "lua", "c", "go", "rust", "cpp")]
    return often * 3 + fast * 15 + others * 2 + slow
