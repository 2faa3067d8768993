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

# What every child needs is bound to names of this module: to reach it through another writes to that module's page.
close, make, put, readv, set_blocking = os.close, os.open, os.write, os.readv, os.set_blocking
MAKE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
callbacks, collect = atexit._ncallbacks, gc.collect
modules, names = sys.modules, sys.__dict__
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


def begin_anew():
    """Small things that are made from here on lie close together: the library's doing, before it serves."""
    os.getppid()


def write_anew():
    """What every child runs and reads."""
    global FILE, MESSAGE, USUAL_LENGTHS, USUAL_ITEMS, seeds
    for each in renew, receive, execute, unpack, write, finish, flush, flush_one, release:
        code = marshal.loads(marshal.dumps(each.__code__))
        globals()[each.__name__] = FunctionType(code, globals(), each.__name__, each.__defaults__)
    FILE, seeds = FILE[:4] + FILE[4:], []
    MESSAGE, USUAL_LENGTHS, USUAL_ITEMS = bytearray(len(MESSAGE)), USUAL_LENGTHS[:-1] + b" ", USUAL_ITEMS[:-1] + b"4"


def prepare_zygote():
    os.chdir("/tmp")
    fill_gaps()
    begin_anew()
    write_anew()
    if "random" in sys.modules:
        seeds.append(RandomState.seed.__get__(sys.modules["random"]._inst))
    if "numpy.random" in sys.modules:
        seeds.append(sys.modules["numpy.random"].seed)
    for _ in range(20):  # what adapts to its use does so here, and not in each child again
        rehearse(True)
    gc.collect()
    fill_gaps()
    begin_anew()
    filling.append(slice(0))  # Python keeps one for the next who needs one
    filling.append([])  # what the collector knows is in a list: who leaves it writes to its neighbours
    prepare("/work")
    filling.append([])
    gc.freeze()
    del os.environ["LD_PRELOAD"], os.environ["LD_BIND_NOW"]


seeds = []  # of random numbers: what gives a child its own


def renew():
    for seed in seeds:
        seed()


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
    execute(message, len(modules), False)
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
        fd = make(path, MAKE, mode)
    while content:
        content = content[put(fd, content):]
    close(fd)


def receive(channel):
    set_blocking(channel, False)
    try:
        length = readv(channel, [MESSAGE])
    except BlockingIOError:
        rehearse()
        place()
        prepare(os.getcwd())
        bytes(MESSAGE[:len(REHEARSAL)])
        compile(REHEARSAL, prepared[1], "exec", dont_inherit=True)  # where it lies from now on
        set_blocking(channel, True)
        put(channel, b"r")
        length = readv(channel, [MESSAGE])
    close(channel)
    if not length:
        leave(0)
    return bytes(MESSAGE[:length])


# Of a program without arguments or variables, but for the length of its source and that itself.
USUAL_LENGTHS = b"4 7 1 1 1 7 3 "
USUAL_ITEMS = b"codemain.py001main.py644"
USUAL_LENGTH, USUAL_ITEM = len(USUAL_LENGTHS), len(USUAL_ITEMS)


def unpack(message):
    """The program: entry, its source if it came along, arguments. Files are written and variables set."""
    if message[:USUAL_LENGTH] == USUAL_LENGTHS:
        at = USUAL_LENGTH
        while message[at] != 10:
            at += 1
        items = at + 1 + USUAL_ITEM
        if message[at + 1:items] == USUAL_ITEMS:
            source = message[items:]
            write(FILE, 0o644, source)
            return FILE, source, []
    lengths, _, rest = message.partition(b"\n")
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
    done = "stdout" not in names or flush_one(names["stdout"])
    return ("stderr" not in names or flush_one(names["stderr"])) and done


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


def release(held, path, loaded):
    """Lets go of a program's modules and finalizes what they held."""
    module, held[0] = held[0], None
    if next(reversed(module.__dict__), None) != "__cached__":  # or it has no names of its own
        for value in list(module.__dict__.values()):  # what the collector would drop with a file that is part of a cycle
            if isinstance(value, IOBase):
                flush_one(value)
    # Those that the program loaded came last; to list the others would make a copy of each one's page. A module may load
    # more when it is asked for an attribute, without end.
    if len(modules) > loaded:
        folder, kept = path.rpartition("/")[0], []
        for name, other in list(islice(reversed(modules.items()), len(modules) - loaded))[::-1]:
            modules.pop(name, None)
            file = other.__dict__.get("__file__") if isinstance(other, ModuleType) else None
            if not (isinstance(file, str) and file.startswith(folder)):
                kept.append(other)
    module = value = other = None
    if "__main__" in modules:
        modules["__main__"] = None
    collect()


def finish(held, path, loaded, last):
    """The end of an interpreter, but for what only frees memory; whether all that was printed could be written. `held`
    has the program's module; `last`: nothing comes after it."""
    if last and (threaded or len(modules) > loaded) and "threading" in modules:
        try:
            modules["threading"]._shutdown()
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
    if callbacks() and last:
        atexit._run_exitfuncs()
    done = flush()
    if "last_value" in names:
        sys.last_type = sys.last_value = sys.last_traceback = None
    release(held, path, loaded)
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
threaded = "threading" in modules
gc.collect()
gc.freeze()
if zygote:
    prepare_zygote()
    alone = len(sys._current_frames()) == 1
    # The library's: both stay here for good and return in children only. What Python does there after a fork, for the sake
    # of locks and other threads, would make copies of forty pages.
    if os.getppid() != -1 if alone else os.fork():
        leave(1)
    renew()
else:
    prepare(os.getcwd())
leave(execute(receive(CHANNEL), len(modules), True))
