//! Python packages and a package index on loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::extract::Request;
use haft_testkit::upstream::axum::http::StatusCode;
use haft_testkit::upstream::axum::response::{Html, IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

/// A package file: its name and its content.
#[derive(Clone)]
pub(super) struct PackageFile {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl PackageFile {
    /// Makes a wheel with one module whose text is `source`, and what it requires.
    pub(super) fn wheel(name: &str, version: &str, source: &str, requires: &[&str]) -> Self {
        let about = format!("{name}-{version}.dist-info");
        let requires: Vec<String> = requires.iter().map(|line| format!("Requires-Dist: {line}\n")).collect();
        let requires = requires.concat();
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}");
        let tag = "Wheel-Version: 1.0\nGenerator: haft\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        let module = format!("{name}/__init__.py");
        let record = format!("{module},,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n");
        let files = [
            (module, source.to_owned()),
            (format!("{about}/METADATA"), metadata),
            (format!("{about}/WHEEL"), tag.to_owned()),
            (format!("{about}/RECORD"), record),
        ];
        Self { name: format!("{name}-{version}-py3-none-any.whl"), bytes: zip(&files) }
    }

    /// Makes a source distribution that builds a wheel with its own code.
    pub(super) fn source(name: &str, version: &str, source: &str) -> Self {
        let wheel = Self::wheel(name, version, source, &[]);
        let hex = hex(&wheel.bytes);
        let backend = format!(
            "import os\ndef build_wheel(folder, settings=None, metadata=None):\n    \
             open(os.path.join(folder, '{0}'), 'wb').write(bytes.fromhex('{hex}'))\n    return '{0}'\n",
            wheel.name
        );
        let project = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
        let info = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
        let root = format!("{name}-{version}");
        let files = [
            (format!("{root}/PKG-INFO"), info),
            (format!("{root}/pyproject.toml"), project.to_owned()),
            (format!("{root}/backend.py"), backend),
        ];
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&tar(&files)).unwrap();
        Self { name: format!("{root}.tar.gz"), bytes: encoder.finish().unwrap() }
    }

    /// Returns the option that requires this file.
    pub(super) fn hash(&self) -> String {
        let digest: [u8; 32] = Sha256::digest(&self.bytes).into();
        format!("--hash=sha256:{}", hex(&digest))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Writes a ZIP file without compression.
fn zip(files: &[(String, String)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let mut crc = flate2::Crc::new();
        crc.update(text.as_bytes());
        let offset = u32::try_from(out.len()).unwrap();
        let size = u32::try_from(text.len()).unwrap().to_le_bytes();
        let length = u16::try_from(name.len()).unwrap().to_le_bytes();
        // Version, flags, method, time, date.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend([size, size].concat());
        common.extend(length);
        common.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.bytes().chain(text.bytes()));
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        // Comment, disk, attributes.
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.bytes());
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let (start, size) = (u32::try_from(out.len()).unwrap(), u32::try_from(directory.len()).unwrap());
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].concat());
    out.extend([size.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}

/// Writes a tar file.
fn tar(files: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, text) in files {
        let mut header = [0_u8; 512];
        let put = |header: &mut [u8], at: usize, bytes: &[u8]| {
            header.get_mut(at..at + bytes.len()).unwrap().copy_from_slice(bytes);
        };
        put(&mut header, 0, name.as_bytes());
        put(&mut header, 100, b"0000644\0");
        put(&mut header, 124, format!("{:011o}\0", text.len()).as_bytes());
        put(&mut header, 136, b"00000000000\0");
        put(&mut header, 148, b"        ");
        put(&mut header, 156, b"0");
        put(&mut header, 257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
        out.extend(header);
        out.extend(text.bytes());
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

/// A package index (PEP 503) on loopback.
pub(super) struct Index {
    server: Upstream,
    /// While set, files are not sent.
    held: Arc<AtomicBool>,
}

impl Index {
    /// Serves these files.
    pub(super) async fn serve(files: &[PackageFile]) -> Self {
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|file| (file.name.clone(), file.bytes.clone())).collect();
        let (files, held) = (Arc::new(files), Arc::new(AtomicBool::new(false)));
        let holds = Arc::clone(&held);
        let router = Router::new().fallback(move |request: Request| {
            let (files, holds) = (Arc::clone(&files), Arc::clone(&holds));
            async move {
                while holds.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                respond(&files, request.uri().path())
            }
        });
        Self { server: Upstream::serve(router).await.unwrap(), held }
    }

    /// Stops or continues to respond.
    pub(super) fn hold(&self, hold: bool) {
        self.held.store(hold, Ordering::SeqCst);
    }

    /// Returns the URL with credentials.
    pub(super) fn url(&self) -> String {
        format!("http://robot:hunter2-token@{}/simple/", self.server.address)
    }

    /// Returns how often package files were requested.
    pub(super) fn downloads(&self) -> usize {
        let is_file = |target: &str| target.starts_with("/files/") && !target.ends_with(".metadata");
        self.server.seen().iter().filter(|request| is_file(&request.target)).count()
    }

    /// Returns how many requests there were.
    pub(super) fn requests(&self) -> usize {
        self.server.seen().len()
    }
}

fn respond(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Response {
    if let Some(bytes) = path.strip_prefix("/files/").and_then(|name| files.get(name)) {
        return bytes.clone().into_response();
    }
    let Some(package) = path.strip_prefix("/simple/").map(|name| name.trim_end_matches('/')) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let is_of = |name: &&String| name.to_lowercase().split('-').next() == Some(package);
    let link = |name: &String| format!("<a href=\"/files/{name}\">{name}</a>\n");
    let links = files.keys().filter(is_of).map(link).collect::<Vec<_>>().concat();
    if links.is_empty() { StatusCode::NOT_FOUND.into_response() } else { Html(links).into_response() }
}
