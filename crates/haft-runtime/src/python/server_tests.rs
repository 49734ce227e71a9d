//! The program in the sandbox, against the real one.

use std::time::Duration;

use haft_core::name::TenantId;
use haft_sandbox::{EngineName, Ending, Level, Limits, Sandbox, Settings};
use tempfile::TempDir;

use super::interpreters::Interpreters;
use super::pool::PoolSettings;
use super::recipe::{Recipe, Source};
use super::request::{Request, Wanted};
use super::server::{Bounds, Done};

struct Rig {
    interpreters: Interpreters,
    home: TempDir,
}

impl Rig {
    fn new(engine: EngineName) -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = Settings { engine, ..Settings::new(home.path().join("run")) };
        let interpreters = Interpreters::with(Sandbox::open(settings).unwrap(), PoolSettings::default());
        Self { interpreters, home }
    }

    async fn call(&self, source: Source, wanted: Wanted) -> Done {
        let recipe = Recipe {
            name: "tool".to_owned(),
            source,
            level: Level::Isolated,
            network: false,
            limits: Limits::default(),
            path: "/usr/bin:/bin".to_owned(),
        };
        let request = Request { wanted, env: vec![("A".to_owned(), "1".to_owned())], large: Vec::new() };
        let bounds =
            Bounds { wall: Duration::from_secs(20), cpu: Duration::from_secs(20), output: 1 << 20 };
        let tenant = TenantId::new("one").unwrap();
        self.interpreters.run(&tenant, &recipe, &request, bounds, &mut |_, _| {}).await.unwrap()
    }

    async fn script(&self, body: &str) -> (Ending, String, String) {
        let source = Source::Script { body: body.to_owned(), plain: true };
        let done = self.call(source, Wanted::Script { body: None, args_file: None }).await;
        (done.ending, done.stdout.text().into_owned(), done.stderr.text().into_owned())
    }
}

#[tokio::test]
async fn hello() {
    let rig = Rig::new(EngineName::Bubblewrap);
    for _ in 0..3 {
        let told = rig.script("import os\nprint(os.environ, os.getpid(), os.listdir('/proc/self/fd'), os.getcwd(), __name__)\nprint(open('/proc/mounts').read())").await;
        println!("{told:?}");
    }
    for _ in 0..10 {
        let s = std::time::Instant::now();
        let told = rig.script("import os, json, re, urllib.request\nprint(1)").await;
        println!("{told:?} {:?}", s.elapsed());
    }
    println!("{:?}", rig.script("def f():\n  raise ValueError('x')\nf()").await);
}
