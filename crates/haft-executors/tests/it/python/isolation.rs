//! Nothing of a call is there in the next one.

use serde_json::json;

use super::rig::Rig;

/// Leaves something behind in one call and searches for it in the next call of the same tool.
async fn check(leave: &str, look: &str) {
    let rig = Rig::new();
    let indent = |text: &str| text.replace('\n', "\n    ");
    let body = format!(
        "import builtins, json, os, random, resource, shutil, signal, subprocess, sys, threading, time\n\
         if os.environ['phase'] == '1':\n    {}\n    print('left')\nelse:\n    {}\n",
        indent(leave),
        indent(look)
    );
    let tool = rig.script(&body, &["phase", "marker"]);
    let marker = "a-marker-of-one-call-0123456789";
    assert_eq!(tool.call(json!({"phase": 1, "marker": marker})).await, Ok(json!("left")), "{leave}");
    for _ in 0..2 {
        assert_eq!(tool.call(json!({"phase": 2})).await, Ok(json!("clean")), "{leave}");
    }
}

#[tokio::test]
async fn the_interpreter_is_unchanged_after_a_call() {
    check("builtins.leak = 1", "print('leak' if hasattr(builtins, 'leak') else 'clean')").await;
    check("json.dumps = lambda _: 'patched'", "print(json.dumps('clean').strip('\"'))").await;
    check("sys.path.append('/x')", "print('leak' if '/x' in sys.path else 'clean')").await;
    check("sys.modules['odd'] = sys", "print('leak' if 'odd' in sys.modules else 'clean')").await;
    check("os.environ['LEAK'] = '1'", "print(os.environ.get('LEAK', 'clean'))").await;
    check(
        "os.chdir('/'); os.umask(0)",
        "print('clean' if (os.getcwd(), os.umask(0)) == ('/work', 0o22) else 'leak')",
    )
    .await;
    check(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "print('clean' if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL else 'leak')",
    )
    .await;
    check(
        "threading.Thread(target=time.sleep, args=(100,), daemon=True).start()",
        "print('clean' if threading.active_count() == 1 else 'leak')",
    )
    .await;
    check(
        "resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))",
        "open('/dev/null'); print('clean' if resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 10 else 'leak')",
    )
    .await;
}

#[tokio::test]
async fn two_calls_draw_different_numbers() {
    let rig = Rig::new();
    let tool = rig.script("import random, uuid; print(random.random(), uuid.uuid4())", &[]);
    assert_ne!(tool.call(json!({})).await, tool.call(json!({})).await);
}

#[tokio::test]
async fn folders_are_emptied_after_a_call() {
    let look = "print('clean' if sum((os.listdir(f) for f in ('/work', '/tmp', '/dev/shm')), []) == ['args.json'] \
                else 'leak')";
    for leave in [
        "for f in ('/work', '/tmp', '/dev/shm'): open(f + '/x', 'w').write('x')",
        "os.makedirs('a/b/c'); open('a/b/c/d', 'w').close()",
        "os.symlink('/usr', 'link'); os.symlink('nowhere', '.dangling')",
        "os.mkdir('closed'); open('closed/x', 'w').close(); os.chmod('closed', 0)",
        "os.mkfifo('pipe'); os.link('pipe', 'again')",
        "open(b'odd \\xff \\n name', 'w').close()",
        "[open(str(n), 'w').close() for n in range(500)]",
        "for n in range(400): os.mkdir('d'); os.chdir('d')",
        "os.chmod('/work', 0o500)",
        "os.chmod('/tmp', 0o1777)",
    ] {
        check(leave, look).await;
    }
}

#[tokio::test]
async fn processes_are_killed_after_a_call() {
    let look = "pids = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]\n\
                print('clean' if pids == [] else pids)";
    for leave in [
        "subprocess.Popen(['sleep', '1000'])",
        "subprocess.Popen(['sleep', '1000'], start_new_session=True, stdout=subprocess.DEVNULL)",
        "os.fork() or time.sleep(1000)",
        "for n in range(5):\n    if os.fork() == 0:\n        os.setsid()\n        os.fork()\n        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n        time.sleep(1000)",
    ] {
        check(leave, look).await;
    }
}

#[tokio::test]
async fn changes_to_the_server_do_not_persist() {
    let look = "print('clean' if (resource.getrlimit(resource.RLIMIT_NOFILE)[0], os.getpriority(os.PRIO_PROCESS, 0), \
                len(os.sched_getaffinity(0)) == os.cpu_count(), os.sched_getscheduler(0)) == (1024, 0, True, 0) else 'leak')";
    for leave in [
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (100, 100))",
        "resource.prlimit(1, resource.RLIMIT_CPU, (1, 2))",
        "os.setpriority(os.PRIO_PROCESS, 1, 5)",
        "os.sched_setaffinity(1, [min(os.sched_getaffinity(0))])",
        "os.sched_setscheduler(1, os.SCHED_BATCH, os.sched_param(0))",
        "os.kill(1, signal.SIGSTOP)",
    ] {
        // Refused, or undone.
        check(&format!("try: {leave}\nexcept PermissionError: pass"), look).await;
    }
    check(
        "try: os.setxattr('/work', 'user.leak', b'1')\nexcept OSError: pass",
        "print('clean' if 'user.leak' not in os.listxattr('/work') else 'leak')",
    )
    .await;
}

#[tokio::test]
async fn no_argument_of_a_call_is_in_the_memory_of_the_next() {
    // The pattern does not match itself.
    let search = "import re\n\
                  needle = re.compile(b'a-marker-of-one[-]call[-]0123456789')\n\
                  found = 0\n\
                  with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:\n    \
                  for line in maps.readlines():\n        \
                  span, rights = line.split()[:2]\n        \
                  start, end = (int(n, 16) for n in span.split('-'))\n        \
                  if rights.startswith('rw'):\n            \
                  memory.seek(start)\n            \
                  found += bool(needle.search(memory.read(end - start)))\n";
    check(&format!("{search}assert found > 0"), &format!("{search}print('leak' if found else 'clean')"))
        .await;
}
