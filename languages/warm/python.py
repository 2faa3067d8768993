"""Waits in a started Python for a program and runs it as `python3 ENTRY ARGS` would.

argv: the modules to load, joined by commas; then, in a process that forks the waiting ones, "zygote" and the path of the
library by which it does so.
"""
import atexit
import gc
import marshal
import os
import sys
from _io import _IOBase as IOBase
from _random import Random as RandomState
from importlib.machinery import SourceFileLoader
from itertools import islice
from os import _exit as leave
from types import FunctionType, ModuleType

CHANNEL = 4
GAPS_BYTES = 1 << 18  # of a size, at most: not every build of Python has pools
MESSAGE = bytearray(1 << 17)  # one for all: what a program allocates lies where it lay in the rehearsal
BUILTINS = __builtins__


def preload(names):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in filter(None, names.split(",")):
            try:
                __import__(name)
            except Exception:
                pass


filling = []


def fill_gaps():
    """Gives out what is free in the memory in use, so that what is made next lies together: each page that a child writes
    to is copied for it. The first block of a new pool tells that the gaps of its size are filled; a block above all that
    there was, that malloc has none."""
    for size in range(512, 15, -16):
        for i in range(GAPS_BYTES // size):
            filling.append(bytes(size - 33) if size > 33 else i + .5 if size > 16 else object())
            if id(filling[-1]) & 0x3fff == 48:
                break
    filling.append(bytes(100000))  # and makes malloc sort what is free, which it would do in each child
    top = id(filling[-1])
    for size in range(8192, 512, -16):
        for i in range(GAPS_BYTES // size):
            filling.append(bytes(size - 33))
            if id(filling[-1]) > top:
                del filling[-1]
                break


def write_anew():
    """The functions that every child runs."""
    for each in receive, execute, unpack, write, finish, flush, flush_one, release:
        code = marshal.loads(marshal.dumps(each.__code__))
        globals()[each.__name__] = FunctionType(code, globals(), each.__name__, each.__defaults__)


def prepare_zygote():
    os.chdir("/tmp")
    fill_gaps()
    write_anew()
    if "random" in sys.modules:
        seeds.append(RandomState.seed.__get__(sys.modules["random"]._inst))
    if "numpy.random" in sys.modules:
        seeds.append(sys.modules["numpy.random"].seed)
    for _ in range(20):  # what adapts to its use does so here, and not in each child again
        rehearse(True)
    prepare("/work")
    gc.collect()
    fill_gaps()
    gc.freeze()
    del os.environ["LD_PRELOAD"], os.environ["LD_BIND_NOW"]


seeds = []  # of random numbers: what gives a child its own


REHEARSAL = b"""def f(x):
    return [x]
s = f"{f(1)} {1.5}"
print(s, "warm")
try:
    {}[s]
except KeyError:
    pass
"""


def rehearse(with_channel=False):
    """Goes the way of a program to its end, so that the memory it takes is there and private before anybody waits. What is
    left is for prepare() to put right."""
    message = b"%b%d\n%b%b" % (USUAL_LENGTHS, len(REHEARSAL), USUAL_ITEMS, REHEARSAL)
    null, out = os.open("/dev/null", os.O_WRONLY), os.dup(1)
    os.dup2(null, 1)
    prepare(os.getcwd())
    if with_channel:
        channel, end = os.pipe()
        os.write(end, message)
        os.close(end)
        message = receive(channel)
    else:
        MESSAGE[0] = 0
    execute(message, len(sys.modules), False)
    os.dup2(out, 1)
    os.close(null)
    os.close(out)
    os.unlink(FILE)


FILE = "main.py"
placed = None  # it is open already, empty: to make one takes longer than to fill it


def place():
    global placed
    placed = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)


def unplace():
    os.close(placed)
    os.unlink(FILE)


def write(path, mode, content):
    global placed
    if placed is not None and path == FILE:
        fd, placed = placed, None
        if mode != 0o644:
            os.fchmod(fd, mode)
    else:
        if "/" in path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    while content:
        content = content[os.write(fd, content):]
    os.close(fd)


def receive(channel):
    os.set_blocking(channel, False)
    try:
        length = os.readv(channel, [MESSAGE])
    except BlockingIOError:
        rehearse()
        place()
        prepare(os.getcwd())
        bytes(MESSAGE[:len(REHEARSAL)])
        compile(REHEARSAL, prepared[1], "exec", dont_inherit=True)  # where it lies from now on
        os.set_blocking(channel, True)
        os.write(channel, b"r")
        length = os.readv(channel, [MESSAGE])
    os.close(channel)
    if not length:
        leave(0)
    return bytes(MESSAGE[:length])


# Of a program without arguments or variables, but for the length of its source and that itself.
USUAL_LENGTHS = b"4 7 1 1 1 7 3 "
USUAL_ITEMS = b"codemain.py001main.py644"


def unpack(message):
    """The program: entry, its source if it came along, arguments. Files are written and variables set."""
    lengths, _, rest = message.partition(b"\n")
    if rest.startswith(USUAL_ITEMS) and lengths.startswith(USUAL_LENGTHS):
        source = rest[len(USUAL_ITEMS):]
        write(FILE, 0o644, source)
        return FILE, source, []
    at, items = 0, []
    for length in map(int, lengths.split()):
        items.append(rest[at:at + length])
        at += length
    items.reverse()
    items.pop()  # the kind: both run alike
    entry = os.fsdecode(items.pop())
    arguments = [os.fsdecode(items.pop()) for _ in range(int(items.pop()))]
    for _ in range(int(items.pop())):
        name, _, value = os.fsdecode(items.pop()).partition("=")
        os.environ[name] = value
    source = None
    for _ in range(int(items.pop())):
        path, mode, content = os.fsdecode(items.pop()), int(items.pop(), 8), items.pop()
        write(path, mode, content)
        if path == entry:
            source = content
    return entry, source, arguments


def module_for(path):
    main = ModuleType("__main__")
    main.__dict__.update(__loader__=SourceFileLoader("__main__", path), __annotations__={}, __builtins__=BUILTINS,
                         __file__=path, __cached__=None)
    return main


def become(path, entry, arguments):
    """The module that the program runs as, and its path."""
    main = sys.modules["__main__"] = module_for(path)
    sys.argv[:] = [entry, *arguments]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.orig_argv[0], entry, *arguments]
    sys.path[0] = path.rpartition("/")[0]
    return main, path


prepared = None  # what a program without arguments becomes, before anybody waits


def prepare(directory):
    global prepared
    prepared = become(f"{directory}/{FILE}", FILE, [])


def exit_status(code):
    """What sys.exit(code) makes of it."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    flush()
    print(code, file=sys.stderr, flush=True)
    return 1


def flush_one(stream):
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except AttributeError:
        pass
    except BaseException:
        return False
    return True


def flush():
    done = flush_one(sys.stdout)
    return flush_one(sys.stderr) and done


def show(error):
    """As the interpreter shows what nothing caught; no line of this file is in it."""
    trace = error.__traceback__.tb_next
    flush()
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    error.__traceback__ = trace
    try:
        sys.excepthook(type(error), error, trace)
    except SystemExit as left:
        return exit_status(left.code)
    except BaseException as failed:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failed), failed, failed.__traceback__.tb_next)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)
    return 1


def execute(message, loaded, last):
    """Runs the program of a message to its end, and tells its exit status."""
    global prepared
    entry, source, arguments = unpack(message)
    if placed is not None:
        unplace()
    if entry != FILE or arguments:
        prepared = become(os.path.join(os.getcwd(), entry), entry, arguments)
    main, path = prepared
    prepared = None
    status, interrupted = 0, False
    try:
        if source is None:
            with open(path, "rb") as file:
                source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as left:
        status = exit_status(left.code)
    except BaseException as error:
        status, interrupted = show(error), isinstance(error, KeyboardInterrupt)
    held, main = [main], None
    try:
        if not finish(held, path, loaded, last):
            status = 120
    except BaseException:  # an interrupt, say, when all is over
        pass
    if interrupted and last:
        die_of_interrupt()
    return status


def release(module, path, loaded):
    """Lets go of a program's modules and finalizes what they held."""
    if next(reversed(module.__dict__), None) != "__cached__":  # or it has no names of its own
        for value in list(module.__dict__.values()):  # what the collector would drop with a file that is part of a cycle
            if isinstance(value, IOBase):
                flush_one(value)
    folder, kept = path.rpartition("/")[0], []
    # Those that the program loaded came last; to list the others would make a copy of each one's page. A module may load
    # more when it is asked for an attribute, without end.
    if len(sys.modules) > loaded:
        for name, other in list(islice(reversed(sys.modules.items()), len(sys.modules) - loaded))[::-1]:
            sys.modules.pop(name, None)
            file = other.__dict__.get("__file__") if isinstance(other, ModuleType) else None
            if not (isinstance(file, str) and file.startswith(folder)):
                kept.append(other)
    module = value = other = None
    sys.modules.pop("__main__", None)
    gc.collect()


def finish(held, path, loaded, last):
    """The end of an interpreter, but for what only frees memory; whether all that was printed could be written. `held`
    has the program's module; `last`: nothing comes after it."""
    if last and "threading" in sys.modules:
        try:
            sys.modules["threading"]._shutdown()
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
    if atexit._ncallbacks() and last:
        atexit._run_exitfuncs()
    done = flush()
    if "last_value" in sys.__dict__:
        sys.last_type = sys.last_value = sys.last_traceback = None
    release(held.pop(), path, loaded)
    return flush() and done


def die_of_interrupt():
    import _signal
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGINT)


zygote = sys.argv[2:3] == ["zygote"]
if zygote and "LD_PRELOAD" not in os.environ:
    os.execve(sys.executable, sys.orig_argv, {**os.environ, "LD_PRELOAD": sys.argv[3], "LD_BIND_NOW": "1"})
threads = os.environ.get("OPENBLAS_NUM_THREADS")
if zygote and threads:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read once, when the library is loaded, which else starts threads
preload(sys.argv[1])
if zygote and threads:
    os.environ["OPENBLAS_NUM_THREADS"] = threads
gc.collect()
gc.freeze()
if zygote:
    prepare_zygote()
    alone = len(sys._current_frames()) == 1
    # The library's: both stay here for good and return in children only. What Python does there after a fork, for the sake
    # of locks and other threads, would make copies of forty pages.
    if os.getppid() != -1 if alone else os.fork():
        leave(1)
    while seeds:
        seeds.pop()()
else:
    prepare(os.getcwd())
leave(execute(receive(CHANNEL), len(sys.modules), True))
