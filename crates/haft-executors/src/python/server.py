"""Runs python tools inside the sandbox: forked from a warm interpreter, or once.

`serve`: standard input is a socket. The server forks a child in advance, which waits for a call: one byte and four
file descriptors, namely the call as JSON, standard output, standard error, and the result. Only the child reads
these: neither arguments nor secrets are in the memory that the next child inherits. A child that is finished, and has
no other processes, reports its exit code after the result, so that the caller need not wait for its end. When the
child has ended, the server kills everything else in its process namespace, empties the private folders, and forks the
next child. If the server cannot restore a clean state, it exits, and haft replaces the sandbox.

`once`: standard input is the call as JSON; there is no second call, and nothing is forked. The result goes to
standard output, and what the tool prints to standard error.
"""

import sys

if sys.version_info < (3, 9):
    sys.stderr.write("haft: python %d.%d is too old, 3.9 or later is needed\n" % sys.version_info[:2])
    sys.exit(3)

import ast
import atexit
import gc
import importlib
import json
import linecache
import os
import resource
import signal
import socket
import threading
import time
import traceback
import types
import warnings

# Modules that most scripts use. Other modules of the standard library are imported in advance if a script names them.
USUAL = (
    "base64 collections datetime decimal functools hashlib io itertools math pathlib random re string "
    "textwrap typing urllib.parse uuid"
).split()

# Modules whose import has side effects.
NOT_AHEAD = {"__main__", "antigravity", "idlelib", "test", "this", "tkinter", "turtle", "turtledemo"}

# After this many calls a server is replaced.
MAX_CALLS = 2000

PR_SET_DUMPABLE = 4
COROUTINE = 0x80  # in the flags of a function's code

# The rehearsal: a call, and a script with typical operations. Its output is discarded.
SAMPLE = """{"env": {"PATH": "/usr/bin:/bin", "HOME": "/", "text": "a b", "HAFT_ARGS": "{}"}, "large": {}, "cpu": 60,
"body": null, "args_file": "{}", "entry": null, "kwargs": {"a": [1, 2.5, true]}, "check": null}"""
USUAL_CODE = compile(
    """
import json, os, re, sys
class Thing:
    def __init__(self, text): self.words = re.compile("([a-z0-9]+)|^_[.]*$").findall(text)
print(json.dumps({"words": [str(len(word)) for word in Thing(os.environ.get("text", "")).words]}))
print(f"{1.5:.2f}", file=sys.stderr)
""",
    "<haft>",
    "exec",
)


class Unclean(Exception):
    """The sandbox could not be restored to a clean state."""


# ---- before the first call --------------------------------------------------------------------------------------


class Tool:
    """What this interpreter serves: one script, the functions of one toolset, or syntax checks."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            recipe = json.load(file)
        self.filename = "<%s>" % recipe["name"]
        self.work = recipe["work"]
        # Where calls run: the workspace, which is kept, or the private folder.
        self.directory = recipe["directory"] or self.work
        self.folders = recipe["folders"]
        self.code = None
        self.sound = True
        if recipe["packages"] is not None:
            add_packages(recipe["packages"])
        if recipe["toolset"] is not None:
            sys.path.insert(0, recipe["toolset"])
        if recipe["module"] is not None:
            self.import_module(recipe["module"])
        if recipe["body"] is not None:
            import_ahead(recipe["body"], recipe["packages"])
            if recipe["plain"]:
                self.code = self.compile(recipe["body"])

    def import_module(self, name):
        """Imports the module of the functions. If that fails, each call fails with the same error."""
        try:
            module = importlib.import_module(name)
            functions = [value for value in vars(module).values() if isinstance(value, types.FunctionType)]
            if any(function.__code__.co_flags & COROUTINE for function in functions):
                importlib.import_module("asyncio")
        except BaseException:
            self.sound = False

    def compile(self, body):
        """Compiles a script; an error in it fails the call, not the server."""
        linecache.cache[self.filename] = (len(body), None, body.splitlines(True), self.filename)
        try:
            return compile(body, self.filename, "exec", dont_inherit=True)
        except Exception as error:
            return error


def add_packages(folder):
    """Adds the packages of the tool before those of the system, which may be other versions of the same."""
    import site

    before = list(sys.path)
    site.addsitedir(folder)  # This also reads `.pth` files.
    added = [path for path in sys.path if path not in before]
    is_site = lambda path: os.path.basename(path) in ("site-packages", "dist-packages")
    system = [path for path in before if is_site(path)]
    sys.path[:] = [path for path in before if not is_site(path)] + added + system


def module_names(folder):
    """Returns the names of the modules in a folder."""
    try:
        return {name.split(".")[0] for name in os.listdir(folder) if name.split(".")[0].isidentifier()}
    except OSError:
        return set()


def import_ahead(body, packages):
    """Imports the usual modules, and those of the standard library and of the packages that the body names."""
    names = set(USUAL)
    try:
        nodes = list(ast.walk(ast.parse(body)))
    except Exception:
        nodes = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update("%s.%s" % (node.module, alias.name) for alias in node.names)
    known = getattr(sys, "stdlib_module_names", {name.split(".")[0] for name in USUAL}) - NOT_AHEAD
    if packages is not None:
        known = known | module_names(packages)
    for name in sorted(names):
        if name.split(".")[0] in known:
            try:
                importlib.import_module(name)
            except BaseException:
                pass  # `from module import function` names no module; and the script may expect the error.


# ---- one call ------------------------------------------------------------------------------------------------


def make_ready(tool):
    """Makes the preparations that need no call."""
    os.chdir(tool.directory)
    os.environ.clear()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)


def perform(tool, call, result):
    """Runs a call; returns the exit code."""
    if call["cpu"] is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (call["cpu"], call["cpu"] + 1))
    os.environ.update(call["env"])
    # Values that are too large for the environment of a child process are set in this process only.
    for name, value in call["large"].items():
        os.environ._data[os.environ.encodekey(name)] = os.environ.encodevalue(value)
    if "TZ" in os.environ:
        time.tzset()
    if call["args_file"] is not None:
        with open(os.environ["HAFT_ARGS_FILE"], "x", encoding="utf-8") as file:
            file.write(call["args_file"])
    if call["check"] is not None:
        return check(call["check"], result)
    if call["entry"] is not None:
        os.dup2(2, 1)  # The output of a function is separate from its return value.
        code = guarded(tool, lambda: function(tool, call, result), result)
    else:
        code = guarded(tool, lambda: script(tool, call), None)
    return finish(code)


def script(tool, call):
    code = tool.code if call["body"] is None else tool.compile(call["body"])
    if isinstance(code, Exception):
        raise code
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    sys.argv[:] = [tool.filename]
    exec(code, main.__dict__)


def function(tool, call, result):
    module, _, path = call["entry"].partition(":")
    target = importlib.import_module(module)
    for name in path.split("."):
        target = getattr(target, name)
    from pathlib import Path

    value = target(Path(tool.directory), **call["kwargs"])
    if hasattr(value, "__await__"):
        import asyncio

        async def awaited():
            return await value

        value = asyncio.run(awaited())
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError("`%s` returned a value that is not JSON: %s" % (path, error)) from None
    write_all(result, '{"value":%s}' % text)


def guarded(tool, run, result):
    """Runs code like an interpreter: returns its exit code, prints tracebacks without the frames of this file."""
    try:
        run()
        return 0
    except SystemExit as end:
        code = exit_code(end)
        if result is not None:
            write_all(result, json.dumps({"error": "SystemExit: %s" % (end.code,)}))
        return code
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and is_ours(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        if sys.excepthook is sys.__excepthook__:
            traceback.print_exception(type(error), error, trace)
        else:
            sys.excepthook(type(error), error, trace)
        if result is not None:
            line = traceback.format_exception_only(type(error), error)[-1].strip()
            write_all(result, json.dumps({"error": line[:4000]}))
        return 1


def is_ours(filename):
    return filename in (__file__, importlib.__file__) or filename.startswith("<frozen importlib")


def exit_code(end):
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def finish(code):
    """Exits like an interpreter, but skips the teardown of memory."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        return code or 120
    return code


def check(body, result):
    """Compiles a script; reports its syntax error, or the modules that it imports and that are not installed."""
    warnings.simplefilter("ignore")
    problem = None
    missing = []
    try:
        compile(body, "<script>", "exec", dont_inherit=True)
    except SyntaxError as error:
        problem = {"message": str(error.msg), "line": error.lineno, "column": error.offset}
    except Exception as error:
        problem = {"message": "%s: %s" % (type(error).__name__, error), "line": None, "column": None}
    else:
        missing = missing_modules(body)
    write_all(result, json.dumps({"problem": problem, "missing": missing}))
    return 0


def missing_modules(body):
    """Names the modules of a script that cannot be found. An import inside `try` may fail by design."""
    import importlib.util
    tree = ast.parse(body)
    attempts = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    attempted = {id(inner) for node in attempts for inner in ast.walk(node)}
    names = set()
    for node in ast.walk(tree):
        if id(node) in attempted:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return sorted(name for name in names if not is_installed(importlib.util, name))[:20]


def is_installed(util, name):
    try:
        return name in sys.modules or util.find_spec(name) is not None
    except Exception:
        return True


def write_all(descriptor, text):
    rest = memoryview(text.encode("utf-8", "surrogatepass"))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


# ---- one call after another ----------------------------------------------------------------------------------


def serve(tool):
    control = socket.socket(fileno=os.dup(0))
    # Other inherited descriptors must not reach the children.
    os.closerange(3, control.fileno())
    os.closerange(control.fileno() + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    # The first process of a namespace can kill all others, cannot be killed by them, and inherits their orphans.
    if os.getpid() != 1:
        raise Unclean("the server is not the first process of its namespace")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    devices = [private_device(folder) for folder in tool.folders]
    before = condition(tool)
    # Children must not inspect this process; if that cannot be prevented, it serves one call only.
    prctl = load_prctl()
    hidden = prctl is not None and prctl(PR_SET_DUMPABLE, 0) == 0
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    gc.collect()
    gc.freeze()
    tell(control, {"ready": True})
    seconds, _ = resource.getrlimit(resource.RLIMIT_CPU)
    for number in range(1, MAX_CALLS + 1):
        child = os.fork()
        if child == 0:
            become_call(tool, control, prctl)
        code = wait_for(child)
        end_others()
        again = hidden and tool.sound and number < MAX_CALLS
        if seconds != resource.RLIM_INFINITY and time.process_time() > seconds / 2:
            again = False
        tell(control, {"ended": code, "again": again})
        if not again:
            return 0
        for folder, device in zip(tool.folders, devices):
            empty(folder, device)
        if condition(tool) != before:
            raise Unclean("a call has changed the server's own limits or folders")
    return 0


def tell(control, message):
    control.sendall(json.dumps(message).encode() + b"\n")


def load_prctl():
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    return lambda option, value: prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def become_call(tool, control, prctl):
    """Continues as the process of one call; never returns."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if prctl is not None:
            prctl(PR_SET_DUMPABLE, 1)
        make_ready(tool)
        rehearse(tool)
        _, descriptors, _, _ = socket.recv_fds(control, 1, 4, socket.MSG_CMSG_CLOEXEC)
        if len(descriptors) != 4:
            os._exit(0)
        tell(control, {"started": True})
        control.close()
        payload, out, err, result = descriptors
        about = os.fstat(result)
        for source, target in ((out, 1), (err, 2)):
            os.dup2(source, target)
            os.close(source)
        with open(payload, encoding="utf-8") as file:
            file.seek(0)
            call = json.load(file)
        code = perform(tool, call, result)
        tell_exit(code, result, about)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def tell_exit(code, result, about):
    """Reports the exit code before the process ends, which takes a while, unless other processes must be killed."""
    try:
        os.kill(-1, signal.SIGKILL)
        return  # There are other processes: the server kills them.
    except ProcessLookupError:
        pass
    try:
        # The tool may have closed this descriptor and opened another file with the same number.
        if os.path.samestat(os.fstat(result), about):
            os.write(result, b"\nexit %d\n" % code)
    except OSError:
        pass


def rehearse(tool):
    """Makes the operations of a typical call, so that this process has its own copy of that memory in advance."""
    path = os.path.join(tool.work, "rehearsal")
    with open(path, "x+", encoding="utf-8") as file:
        file.write(SAMPLE)
        file.flush()
        with open(os.dup(file.fileno()), encoding="utf-8") as payload:
            payload.seek(0)
            call = json.load(payload)
    os.unlink(path)
    os.environ.update(call["env"])
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    exec(USUAL_CODE, main.__dict__)
    os.environ.clear()


def wait_for(child):
    """Waits for the child and reaps orphans; returns its exit code, or the negative number of a signal."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def end_others():
    """Kills every other process of the namespace and waits until they have ended."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def condition(tool):
    """Returns the state of the server and its folders, except their content, that a call could change."""
    limits = [resource.getrlimit(limit) for limit in range(16)]
    scheduling = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0))
    folders = []
    for folder in tool.folders:
        info = os.stat(folder)
        try:
            attributes = os.listxattr(folder)
        except OSError:
            attributes = []
        folders.append((info.st_dev, info.st_mode, info.st_uid, info.st_gid, attributes))
    return limits, scheduling, folders


def private_device(folder):
    """Returns the file system of a private folder, which must be mounted there and in memory."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounts = [line.split() for line in file]
    escaped = folder.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    kinds = [fields[fields.index("-") + 1] for fields in mounts if fields[4] == escaped]
    if kinds[-1:] != ["tmpfs"]:
        raise Unclean("%s is not a private folder" % folder)
    return os.stat(folder).st_dev


def empty(folder, device):
    """Empties a private folder without leaving its file system."""
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.stat(follow_symlinks=False).st_dev != device:
                raise Unclean("%s is on another file system" % entry.path)
            if entry.is_dir(follow_symlinks=False):
                empty(entry.path, device)
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)


def once(tool):
    call = json.load(sys.stdin.buffer)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    result = None
    if call["entry"] is not None or call["check"] is not None:
        result = os.dup(1)
    make_ready(tool)
    return perform(tool, call, result)


if __name__ == "__main__":
    mode, recipe_path = sys.argv[1:]
    tool = Tool(recipe_path)
    os._exit(serve(tool) if mode == "serve" else once(tool))
