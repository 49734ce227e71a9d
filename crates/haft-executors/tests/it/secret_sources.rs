//! Secrets in a Vault that speaks HTTP, in files, and behind commands that run.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use haft_core::name::TenantId;
use haft_core::secret::{ExternalReference, ExternalSecretError, Secret};
use haft_core::{Clock, Timestamp};
use haft_executors::process::Processes;
use haft_executors::secret_sources::{
    SecretCommandSettings, SecretSourceSettings, SecretSources, SourceSettingsError, VaultAuth, VaultSettings,
};
use haft_testkit::upstream::Upstream;
use haft_testkit::vault::{JWT, LEASE_SECONDS, ROLE, ROLE_ID, SECRET_ID, TestVault};
use tempfile::TempDir;

/// A clock that the test sets, in seconds.
#[derive(Default)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// The sources of an installation, and its clock.
struct World {
    sources: SecretSources,
    clock: Arc<TestClock>,
    _home: TempDir,
}

impl World {
    fn new(settings: &SecretSourceSettings) -> Self {
        let home = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock::default());
        let processes = Processes::with_folder(home.path()).unwrap();
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let sources = SecretSources::open(settings, processes, &shared).unwrap();
        Self { sources, clock, _home: home }
    }

    fn of_vault(vault: VaultSettings) -> Self {
        Self::new(&SecretSourceSettings { vault, ..SecretSourceSettings::default() })
    }

    fn pass(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds, Ordering::SeqCst);
    }

    async fn read_as(&self, tenant: &str, text: &str) -> Result<String, ExternalSecretError> {
        let reference = ExternalReference::parse(text).unwrap().unwrap();
        let secret = self.sources.secret(&TenantId::new(tenant).unwrap(), &reference).await?;
        Ok(secret.expose().to_owned())
    }

    /// Returns the secret, or the error.
    async fn read(&self, text: &str) -> String {
        self.read_as("default", text).await.unwrap_or_else(|error| error.to_string())
    }
}

/// Settings for a Vault in which nobody has logged in yet.
fn settings(vault: &TestVault, auth: VaultAuth) -> VaultSettings {
    VaultSettings {
        address: vault.address(),
        auth,
        token: (auth == VaultAuth::Token).then(|| secret("hvs.root-token")),
        role_id: ROLE_ID.to_owned(),
        secret_id: Some(secret(SECRET_ID)),
        role: ROLE.to_owned(),
        ..VaultSettings::default()
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

const DATA: &str = "/v1/secret/data/";

#[tokio::test]
async fn a_value_of_vault_is_kept_for_its_lifetime() {
    let vault = TestVault::start().await.unwrap();
    vault.accept("hvs.root-token");
    vault.put("apps/weather", r#"{"api_key":"one","user":"ada"}"#);
    let namespaced = VaultSettings { namespace: "team-a".to_owned(), ..settings(&vault, VaultAuth::Token) };
    let world = World::of_vault(namespaced);
    assert_eq!(world.read("vault:apps/weather#api_key").await, "one");
    assert_eq!(world.read("vault:apps/weather#user").await, "ada");
    assert_eq!(world.read("vault:apps/weather").await, "one");
    // All keys of a path are one request.
    let seen = vault.requests(DATA);
    let [request] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!(request.target, "/v1/secret/data/apps/weather");
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    assert_eq!((header("x-vault-namespace"), header("x-vault-request")), (Some("team-a"), Some("true")));

    vault.put("apps/weather", r#"{"api_key":"two"}"#);
    world.pass(299);
    assert_eq!(world.read("vault:apps/weather#api_key").await, "one");
    world.pass(1);
    assert_eq!(world.read("vault:apps/weather#api_key").await, "two");
    assert_eq!(world.read("vault:apps/weather#user").await, "the secret has no key `user`");
    assert_eq!(vault.requests(DATA).len(), 2);
}

#[tokio::test]
async fn an_expired_or_revoked_login_is_repeated_once() {
    let vault = TestVault::start().await.unwrap();
    vault.put("a", r#"{"value":"v"}"#);
    let uncached = VaultSettings { cache: Duration::ZERO, ..settings(&vault, VaultAuth::AppRole) };
    let world = World::of_vault(uncached);
    for _ in 0..3 {
        assert_eq!(world.read("vault:a").await, "v");
    }
    assert_eq!((vault.logins(), vault.requests(DATA).len()), (1, 3));

    // The login is about to expire by the clock.
    world.pass(i64::try_from(LEASE_SECONDS).unwrap() / 10 * 9);
    assert_eq!(world.read("vault:a").await, "v");
    assert_eq!((vault.logins(), vault.requests(DATA).len()), (2, 4));

    // Vault does not know the token any more.
    world.pass(60);
    vault.revoke_tokens();
    assert_eq!(world.read("vault:a").await, "v");
    assert_eq!((vault.logins(), vault.requests(DATA).len()), (3, 6));

    // A token that is new was not rejected because of its age.
    vault.revoke_tokens();
    let denied = "Vault denied the request (403): the token is invalid, or its policy does not allow reading `secret/data/a`";
    assert_eq!(world.read("vault:a").await, denied);
    assert_eq!(vault.logins(), 3);
    world.pass(60);
    assert_eq!(world.read("vault:a").await, "v");
    assert_eq!(vault.logins(), 4);
}

#[tokio::test]
async fn every_auth_method_logs_in() {
    let vault = TestVault::start().await.unwrap();
    vault.put("a", r#"{"value":"v"}"#);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    let pod = VaultSettings {
        jwt_file: file("jwt", &format!("{JWT}\n")),
        ..settings(&vault, VaultAuth::Kubernetes)
    };
    assert_eq!(World::of_vault(pod).read("vault:a").await, "v");
    let role = VaultSettings {
        secret_id: None,
        secret_id_file: Some(file("secret-id", &format!("{SECRET_ID}\n"))),
        ..settings(&vault, VaultAuth::AppRole)
    };
    assert_eq!(World::of_vault(role).read("vault:a").await, "v");

    let wrong = VaultSettings { secret_id: Some(secret("wrong-id")), ..settings(&vault, VaultAuth::AppRole) };
    let rejected = World::of_vault(wrong).read("vault:a").await;
    assert_eq!(rejected, "Vault rejected the login by `approle` (status 400)");

    // A file with a token, which an agent of Vault replaces.
    vault.accept("hvs.first");
    let token = VaultSettings {
        token: None,
        token_file: Some(file("token", "hvs.first\n")),
        cache: Duration::ZERO,
        ..settings(&vault, VaultAuth::Token)
    };
    let world = World::of_vault(token);
    assert_eq!(world.read("vault:a").await, "v");
    vault.revoke_tokens();
    vault.accept("hvs.second");
    assert!(world.read("vault:a").await.starts_with("Vault denied the request (403)"));
    file("token", "hvs.second\n");
    assert_eq!(world.read("vault:a").await, "v");
    std::fs::remove_file(folder.path().join("token")).unwrap();
    // The error does not show paths of the server.
    let missing = world.read_as("default", "vault:a").await.unwrap_err();
    let expected = "the credential file of Vault could not be read; the log names it";
    assert_eq!((missing.to_string().as_str(), missing.is_unavailable()), (expected, true));
}

const LOGIN: &str = "/v1/auth/approle/login";
const LOOKUP: &str = "/v1/auth/token/lookup-self";

#[tokio::test]
async fn a_denied_path_causes_few_logins() {
    let vault = TestVault::start().await.unwrap();
    vault.put("a", r#"{"value":"v"}"#);
    vault.deny("/v1/secret/data/b");
    let uncached = VaultSettings { cache: Duration::ZERO, ..settings(&vault, VaultAuth::AppRole) };
    let world = World::of_vault(uncached);
    assert_eq!(world.read("vault:a").await, "v");
    for _ in 0..3 {
        world.pass(60);
        assert!(world.read("vault:b").await.starts_with("Vault denied the request (403)"));
    }
    // Vault accepts the token: it does not matter how often it denies a path.
    assert_eq!((vault.logins(), vault.requests(LOOKUP).len()), (1, 3));

    // The role may have got further policies since the login, though: one login in five minutes.
    for (pause, logins) in [(119, 1), (1, 2), (299, 2), (1, 3)] {
        world.pass(pause);
        assert!(world.read("vault:b").await.starts_with("Vault denied the request (403)"));
        assert_eq!(vault.logins(), logins);
    }
    // One that fails, with two attempts, does not hide the denial, and counts, too.
    vault.fail_logins_with(Some(500));
    for (pause, attempts) in [(300, 5), (60, 5)] {
        world.pass(pause);
        assert!(world.read("vault:b").await.starts_with("Vault denied the request (403)"));
        assert_eq!(vault.requests(LOGIN).len(), attempts);
    }
    assert_eq!(world.read("vault:a").await, "v");
    vault.fail_logins_with(None);

    // A policy that does not allow this request, either: one login per minute.
    vault.deny(LOOKUP);
    for (pause, logins) in [(0, 4), (10, 4), (49, 4), (1, 5)] {
        world.pass(pause);
        assert!(world.read("vault:b").await.starts_with("Vault denied the request (403)"));
        assert_eq!(vault.logins(), logins);
    }
    assert_eq!(world.read("vault:a").await, "v");
}

#[tokio::test]
async fn a_token_is_used_until_its_end_if_no_login_is_possible() {
    let vault = TestVault::start().await.unwrap();
    vault.put("a", r#"{"value":"v"}"#);
    let uncached = VaultSettings { cache: Duration::ZERO, ..settings(&vault, VaultAuth::AppRole) };
    let world = World::of_vault(uncached);
    assert_eq!(world.read("vault:a").await, "v");
    let lease = i64::try_from(LEASE_SECONDS).unwrap();
    world.pass(lease / 10 * 9);
    vault.fail_logins_with(Some(500));
    // Each login has two attempts, and there is not one for each call.
    for (pause, attempts) in [(0, 3), (0, 3), (10, 5)] {
        world.pass(pause);
        assert_eq!(world.read("vault:a").await, "v");
        assert_eq!(vault.requests(LOGIN).len(), attempts);
    }
    world.pass(lease / 10);
    assert_eq!(world.read("vault:a").await, "Vault responded with status 500");
    vault.fail_logins_with(None);
    assert_eq!(world.read("vault:a").await, "v");
}

#[tokio::test]
async fn callers_that_wait_for_a_login_share_its_failure() {
    let vault = TestVault::start().await.unwrap();
    vault.fail_logins_with(Some(500));
    let world = World::of_vault(settings(&vault, VaultAuth::AppRole));
    let paths = ["vault:a", "vault:b", "vault:c", "vault:d"];
    let failures = join_all(paths.map(|path| world.read(path))).await;
    assert_eq!(failures, ["Vault responded with status 500"; 4]);
    // One login, with two attempts.
    assert_eq!(vault.requests(LOGIN).len(), 2);
}

#[tokio::test]
async fn each_failure_of_vault_has_its_own_message() {
    let vault = TestVault::start().await.unwrap();
    vault.accept("hvs.root-token");
    let world = World::of_vault(settings(&vault, VaultAuth::Token));
    let not_found = "not found: Vault has no secret with this path in `secrets.vault.mount`, or its newest version is deleted";
    assert_eq!(world.read("vault:none#a").await, not_found);
    for (status, attempts, expected) in [
        (503, 1, "Vault is sealed"),
        (500, 2, "Vault responded with status 500"),
        (429, 2, "Vault responded with status 429"),
        (
            307,
            1,
            "Vault redirected the request, which haft does not follow; set `secrets.vault.address` to the active node",
        ),
        (405, 1, "Vault responded with status 405"),
    ] {
        vault.fail_with(Some(status));
        let before = vault.requests(DATA).len();
        assert_eq!(world.read("vault:a#b").await, expected);
        assert_eq!(vault.requests(DATA).len() - before, attempts, "{status}");
    }
    let error = world.read_as("default", "vault:a#b").await.unwrap_err();
    assert!(!error.is_unavailable() && !error.to_string().contains("hvs."), "{error}");

    // Another kind of store.
    let other =
        Upstream::bytes("HTTP/1.1 200 OK\r\ncontent-length: 24\r\n\r\n{\"data\": {\"key\": \"v-1\"}}").await;
    let other = other.unwrap();
    let elsewhere = VaultSettings { address: other.url(""), ..settings(&vault, VaultAuth::Token) };
    let invalid = "invalid response of Vault: it has no `data.data`; `secrets.vault.mount` must be a KV store of version 2";
    assert_eq!(World::of_vault(elsewhere).read("vault:a").await, invalid);

    // Nobody listens, and nobody answers.
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let nowhere = VaultSettings { address, ..settings(&vault, VaultAuth::Token) };
    let unreachable = World::of_vault(nowhere).read("vault:a").await;
    assert!(unreachable.starts_with("Vault is unreachable: "), "{unreachable}");
    let silent = Upstream::raw(|stream| async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    });
    let silent = silent.await.unwrap();
    let (address, timeout) = (silent.url(""), Duration::from_millis(200));
    let slow = VaultSettings { address, timeout, ..settings(&vault, VaultAuth::Token) };
    assert_eq!(World::of_vault(slow).read("vault:a").await, "timeout (200ms) exceeded");
}

#[tokio::test]
async fn an_older_value_is_used_while_vault_is_sealed_if_the_settings_say_so() {
    let vault = TestVault::start().await.unwrap();
    vault.accept("hvs.root-token");
    vault.put("a", r#"{"value":"v"}"#);
    let strict = World::of_vault(settings(&vault, VaultAuth::Token));
    let stale = VaultSettings { stale: Duration::from_hours(1), ..settings(&vault, VaultAuth::Token) };
    let lenient = World::of_vault(stale);
    for world in [&strict, &lenient] {
        assert_eq!(world.read("vault:a").await, "v");
        world.pass(600);
    }
    vault.fail_with(Some(503));
    assert_eq!(strict.read("vault:a").await, "Vault is sealed");
    assert_eq!(lenient.read("vault:a").await, "v");
    lenient.pass(3600);
    assert_eq!(lenient.read("vault:a").await, "Vault is sealed");
    vault.fail_with(None);
    assert_eq!(strict.read("vault:a").await, "v");
}

#[tokio::test]
async fn a_command_runs_once_for_its_lifetime_and_its_errors_stay_private() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let runs = folder.path().join("runs");
    let counted = script(
        "counted",
        &format!("echo run >> {}; echo noise >&2; printf '%s-%s\\n' \"$1\" \"$ACCOUNT\"", runs.display()),
    );
    let mut settings = SecretSourceSettings::default();
    let mut add =
        |name: &str, command: SecretCommandSettings| settings.commands.insert(name.to_owned(), command);
    add(
        "github",
        SecretCommandSettings {
            environment: vec![("ACCOUNT".to_owned(), secret("team"))],
            ..SecretCommandSettings::new(vec![counted, "a b;c".to_owned()])
        },
    );
    add("failing", SecretCommandSettings::new(vec![script("failing", "echo 'key: hunter2' >&2; exit 3")]));
    add("silent", SecretCommandSettings::new(vec![script("silent", "exit 0")]));
    add("large", SecretCommandSettings::new(vec![script("large", "head -c 70000 /dev/zero | tr '\\0' x")]));
    add("absent", SecretCommandSettings::new(vec!["no-such-program".to_owned()]));
    let endless = SecretCommandSettings::new(vec![script("endless", "sleep 600")]);
    add("endless", SecretCommandSettings { timeout: Duration::from_millis(500), ..endless });
    let world = World::new(&settings);

    assert_eq!(world.read("cmd:github").await, "a b;c-team");
    assert_eq!(world.read("cmd:github").await, "a b;c-team");
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 1);
    world.pass(300);
    assert_eq!(world.read("cmd:github").await, "a b;c-team");
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 2);

    for (name, expected) in [
        ("failing", "the command exited with code 3"),
        ("silent", "the value is empty"),
        ("large", "the value exceeds the limit of 65536 bytes"),
        ("absent", "the command cannot start: program `no-such-program` not found"),
        ("endless", "timeout (500ms) exceeded"),
        (
            "other",
            "no command `other` is configured for tenant `default`; add `[secrets.commands.other]` to `haft.toml`, or the tenant to its `tenants`",
        ),
    ] {
        assert_eq!(world.read(&format!("cmd:{name}")).await, expected, "{name}");
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_the_output_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let script = format!("echo run >> {}; sleep 1; echo out", runs.display());
    let slow = SecretCommandSettings::new(["sh", "-c", &script].map(str::to_owned).to_vec());
    let mut settings = SecretSourceSettings::default();
    settings.commands.insert("slow".to_owned(), slow);
    let world = World::new(&settings);
    let hurried = tokio::time::timeout(Duration::from_millis(200), world.read("cmd:slow"));
    assert!(hurried.await.is_err());
    assert_eq!(world.read("cmd:slow").await, "out");
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn an_older_value_is_used_while_the_token_file_is_missing() {
    let vault = TestVault::start().await.unwrap();
    vault.accept("hvs.first");
    vault.put("a", r#"{"value":"v"}"#);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "hvs.first").unwrap();
    let world = World::of_vault(VaultSettings {
        token: None,
        token_file: Some(file.clone()),
        stale: Duration::from_hours(1),
        ..settings(&vault, VaultAuth::Token)
    });
    assert_eq!(world.read("vault:a").await, "v");
    std::fs::remove_file(&file).unwrap();
    world.pass(600);
    assert_eq!(world.read("vault:a").await, "v");
}

#[tokio::test]
async fn files_are_read_from_one_folder() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("passwd"), "root").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
    std::fs::create_dir(folder.path().join("db")).unwrap();
    write("db/password", "hunter2\n");
    write("large", &"x".repeat(64 * 1024 + 1));
    symlink(outside.path().join("passwd"), folder.path().join("out")).unwrap();
    symlink("db/password", folder.path().join("in")).unwrap();
    let world = World::new(&of_folder(folder.path()));
    for (path, expected) in [
        ("db/password", "hunter2"),
        ("in", "hunter2"),
        ("out", "the file is outside of the folder"),
        ("none", "the file does not exist"),
        ("db", "the file is a folder"),
        ("large", "the value exceeds the limit of 65536 bytes"),
    ] {
        assert_eq!(world.read(&format!("file:{path}")).await, expected, "{path}");
    }
    // A change takes effect at once.
    write("db/password", "hunter3");
    assert_eq!(world.read("file:db/password").await, "hunter3");
}

#[tokio::test]
async fn no_reference_reads_the_credentials_of_haft() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["vault", "kubernetes.io", "..data"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    for name in ["vault/token", "vault/secret-id", "vault/jwt", "kubernetes.io/token", "..data/key"] {
        std::fs::write(at(name), "s3cr3t").unwrap();
    }
    symlink("vault/token", at("link")).unwrap();
    symlink("vault", at("folder")).unwrap();
    symlink("..data/key", at("key")).unwrap();
    let mut settings = of_folder(folder.path());
    settings.vault.token_file = Some(at("vault/token"));
    settings.vault.secret_id_file = Some(at("vault/secret-id"));
    settings.vault.jwt_file = at("vault/jwt");
    let world = World::new(&settings);
    for path in [
        "vault/token",
        "vault/secret-id",
        "vault/jwt",
        "link",
        "folder/token",
        "kubernetes.io/token",
        "kubernetes.io/none",
        "none",
    ] {
        assert_eq!(world.read(&format!("file:{path}")).await, "the file does not exist", "{path}");
    }
    assert_eq!(world.read("file:key").await, "s3cr3t");
    // A file that another program replaces stays hidden.
    std::fs::write(at("new"), "newer").unwrap();
    std::fs::rename(at("new"), at("vault/token")).unwrap();
    assert_eq!(world.read("file:link").await, "the file does not exist");
}

fn of_folder(folder: &Path) -> SecretSourceSettings {
    let mut settings = SecretSourceSettings::default();
    settings.files.directory = Some(folder.to_owned());
    settings
}

#[tokio::test]
async fn only_tenants_that_are_listed_read_from_a_source() {
    let vault = TestVault::start().await.unwrap();
    vault.accept("hvs.root-token");
    vault.put("tenants/acme/a", r#"{"value":"of acme"}"#);
    vault.put("tenants/default/a", r#"{"value":"of default"}"#);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "k-1").unwrap();
    let mut settings = SecretSourceSettings {
        vault: VaultSettings {
            tenants: vec!["*".to_owned()],
            path_prefix: "tenants/{tenant}".to_owned(),
            ..settings(&vault, VaultAuth::Token)
        },
        ..of_folder(folder.path())
    };
    let print = SecretCommandSettings::new(vec!["echo".to_owned(), "out".to_owned()]);
    settings.commands.insert("print".to_owned(), print);
    let world = World::new(&settings);
    let read = async |tenant: &str, text: &str| {
        world.read_as(tenant, text).await.unwrap_or_else(|error| error.to_string())
    };
    assert_eq!(read("acme", "vault:tenants/acme/a").await, "of acme");
    assert_eq!(read("default", "vault:tenants/default/a").await, "of default");
    // Also if the other tenant has just read it.
    let outside =
        "the path is not below `tenants/default`, to which `secrets.vault.path_prefix` limits the tenant";
    assert_eq!(read("default", "vault:tenants/acme/a").await, outside);
    assert_eq!(read("default", "file:key").await, "k-1");
    assert_eq!(read("default", "cmd:print").await, "out");
    let denied = "tenant `acme` may not use this source; add the tenant to `secrets.files.tenants`";
    assert_eq!(read("acme", "file:key").await, denied);
    // Whether a command exists is not for a tenant that may not use it.
    for name in ["print", "other"] {
        let expected = format!(
            "no command `{name}` is configured for tenant `acme`; add `[secrets.commands.{name}]` to `haft.toml`, or the tenant to its `tenants`"
        );
        assert_eq!(read("acme", &format!("cmd:{name}")).await, expected);
    }
}

#[tokio::test]
async fn a_source_that_is_not_configured_says_what_to_configure() {
    let world = World::new(&SecretSourceSettings::default());
    for (text, setting) in [
        ("vault:a#b", "secrets.vault.address"),
        ("file:a", "secrets.files.directory"),
        ("env:A", "secrets.environment"),
    ] {
        let scheme = text.split(':').next().unwrap();
        let expected = format!("no source for `{scheme}:` is configured; set `{setting}` in `haft.toml`");
        assert_eq!(world.read(text).await, expected);
    }
    let relative = of_folder(Path::new("secrets"));
    let home = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(TestClock::default());
    let opened = SecretSources::open(&relative, Processes::with_folder(home.path()).unwrap(), &clock);
    assert_eq!(opened.err(), Some(SourceSettingsError::Directory));
}

#[tokio::test]
async fn the_state_of_each_source_is_reported() {
    let vault = TestVault::start().await.unwrap();
    let mut settings = SecretSourceSettings {
        vault: settings(&vault, VaultAuth::AppRole),
        ..of_folder(Path::new("/nowhere"))
    };
    let fails = SecretCommandSettings::new(vec!["false".to_owned()]);
    settings.commands.insert("fails".to_owned(), fails);
    let world = World::new(&settings);
    let reports = async || {
        let reports = world.sources.probe().await.into_iter();
        let shown = reports.map(|report| match report.result {
            Ok(message) => format!("{} {message}", report.name),
            Err(error) => format!("{} ! {error}", report.name),
        });
        shown.collect::<Vec<_>>()
    };
    let rest = [
        "file: ! the folder `/nowhere` cannot be read: No such file or directory (os error 2)",
        "cmd:fails ! the command exited with code 1",
    ];
    let with = |first: &'static str| [first].into_iter().chain(rest).collect::<Vec<_>>();
    assert_eq!(reports().await, with("vault: Vault accepts the login by `approle`"));
    vault.fail_with(Some(503));
    assert_eq!(reports().await, with("vault: ! Vault is sealed"));
}
