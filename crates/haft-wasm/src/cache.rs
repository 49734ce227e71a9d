//! Compiled code on disk, so that a start does not compile again what an earlier one has.
//!
//! A file holds a MAC and the code. What does not authenticate, is of another version, or cannot be read counts
//! as not there; the module is compiled anew and the file replaced.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use haft_core::hash;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use wasmtime::Engine;

use crate::compile::Code;
use crate::scan::Format;
use crate::settings::CacheSettings;

/// The bytes of the MAC at the beginning of a file.
const TAG: usize = 32;
/// The largest file that is read.
const MAX_SIZE: u64 = 512 * 1024 * 1024;
/// How much the folder holds; beyond it the files that were written longest ago go.
const TOTAL: u64 = 1024 * 1024 * 1024;

/// The folder of compiled code.
pub(crate) struct Cache {
    folder: PathBuf,
    /// Ready to authenticate one file.
    mac: Hmac<Sha256>,
    /// What the code depends on besides the module: the version of wasmtime and the settings of the engine.
    engine: String,
    written: AtomicU64,
}

impl Cache {
    /// Opens the folder, for its owner alone.
    pub(crate) fn open(settings: &CacheSettings, engine: &Engine) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&settings.folder)?;
        fs::set_permissions(&settings.folder, fs::Permissions::from_mode(0o700))?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let engine = format!("{:016x}", hasher.finish());
        let mac = keyed(settings.key.expose().as_bytes())?;
        Ok(Self { folder: settings.folder.clone(), mac, engine, written: AtomicU64::new(0) })
    }

    /// Returns the name under which the code of a module is kept.
    pub(crate) fn name(&self, bytes: &[u8]) -> String {
        format!("{}-{}.cwasm", hash::of_bytes(bytes), self.engine)
    }

    /// Finds compiled code.
    pub(crate) fn load(&self, engine: &Engine, name: &str, format: Format) -> Option<Code> {
        let body = self.read(name).inspect_err(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(file = name, %error, "compiled WebAssembly cannot be used; it is compiled anew");
            }
        });
        deserialize(engine, &Authentic(body.ok()?), format)
            .inspect_err(|error| {
                tracing::info!(
                    file = name,
                    error = format!("{error:#}"),
                    "compiled WebAssembly is of another engine"
                );
            })
            .ok()
    }

    /// Keeps compiled code; a failure is only a slower start next time.
    pub(crate) fn store(&self, name: &str, code: &Code) {
        let kept = code
            .serialize()
            .map_err(io::Error::other)
            .and_then(|body| self.write(name, &body))
            .and_then(|()| self.make_room(name));
        if let Err(error) = kept {
            tracing::warn!(file = name, %error, "compiled WebAssembly is not kept");
        }
    }

    /// Reads a file of ours; its name is authenticated too, so that none stands in for another.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = File::open(self.folder.join(name))?;
        let mut body = Vec::new();
        let mut tag = [0_u8; TAG];
        (&file).read_exact(&mut tag)?;
        file.take(MAX_SIZE).read_to_end(&mut body)?;
        self.mac(name, &body)
            .verify_slice(&tag)
            .map_err(|_| io::Error::other("it was not written by this installation"))?;
        Ok(body)
    }

    fn mac(&self, name: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(name.as_bytes());
        mac.update(body);
        mac
    }

    fn write(&self, name: &str, body: &[u8]) -> io::Result<()> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!(".{}-{number}.tmp", std::process::id()));
        let write = || {
            let mut file =
                File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(&self.mac(name, body).finalize().into_bytes())?;
            file.write_all(body)?;
            file.sync_data()?;
            fs::rename(&temporary, self.folder.join(name))
        };
        write().inspect_err(|_| drop(fs::remove_file(&temporary)))
    }

    /// Removes what was written longest ago where the folder has grown too large.
    fn make_room(&self, newest: &str) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            files.push((metadata.modified()?, metadata.len(), path));
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if total <= TOTAL {
                break;
            }
            if path.file_name() != Path::new(newest).file_name() {
                fs::remove_file(&path)?;
                total -= size;
            }
        }
        Ok(())
    }
}

/// Bytes that this installation wrote, as their MAC shows.
struct Authentic(Vec<u8>);

#[expect(
    unsafe_code,
    reason = "loading compiled code is running it. It is sound here because the bytes are what `serialize` gave us: \
              they carry a MAC, over the content hash of the module too, under a key derived from a secret of the \
              installation that no tool is given and that alone makes its holder admin; the folder is the owner's \
              alone; and wasmtime itself refuses code of another version or other settings. The bytes are in \
              memory of ours, so nobody changes them between the check and the use"
)]
fn deserialize(engine: &Engine, bytes: &Authentic, format: Format) -> wasmtime::Result<Code> {
    match format {
        // SAFETY: see the reason above.
        Format::Component => {
            unsafe { wasmtime::component::Component::deserialize(engine, &bytes.0) }.map(Code::Component)
        }
        // SAFETY: see the reason above.
        Format::Module => unsafe { wasmtime::Module::deserialize(engine, &bytes.0) }.map(Code::Module),
    }
}

/// Derives the key of this use from the secret, which has others.
fn keyed(secret: &[u8]) -> io::Result<Hmac<Sha256>> {
    let mut derive = Hmac::<Sha256>::new_from_slice(secret).map_err(io::Error::other)?;
    derive.update(b"haft: compiled WebAssembly");
    Hmac::new_from_slice(&derive.finalize().into_bytes()).map_err(io::Error::other)
}
