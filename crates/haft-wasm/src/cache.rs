//! Caches compiled code on disk between starts.
//!
//! A file contains a MAC and the code. A file that is unreadable, not authentic or of another version is ignored and
//! replaced.

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

/// The size of the MAC at the beginning of a file.
const MAC_BYTES: usize = 32;
/// The size limit of a file.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;
/// The size limit of the folder; the oldest files are removed above it.
const MAX_TOTAL_BYTES: u64 = 1024 * 1024 * 1024;

/// A folder of compiled code.
pub(crate) struct Cache {
    folder: PathBuf,
    /// Initialized with the key.
    mac: Hmac<Sha256>,
    /// Identifies the wasmtime version and the engine settings.
    engine: String,
    written: AtomicU64,
}

impl Cache {
    /// Opens the folder with access for its owner only.
    pub(crate) fn open(settings: &CacheSettings, engine: &Engine) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&settings.folder)?;
        fs::set_permissions(&settings.folder, fs::Permissions::from_mode(0o700))?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let engine = format!("{:016x}", hasher.finish());
        let mac = keyed(settings.key.expose().as_bytes())?;
        Ok(Self { folder: settings.folder.clone(), mac, engine, written: AtomicU64::new(0) })
    }

    /// Returns the file name for a module.
    pub(crate) fn name(&self, bytes: &[u8]) -> String {
        format!("{}-{}.cwasm", hash::of_bytes(bytes), self.engine)
    }

    /// Loads compiled code.
    pub(crate) fn load(&self, engine: &Engine, name: &str, format: Format) -> Option<Code> {
        let body = self.read(name).inspect_err(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(file = name, %error, "failed to load compiled WebAssembly; compiling it again");
            }
        });
        deserialize(engine, &Authentic(body.ok()?), format)
            .inspect_err(|error| {
                tracing::info!(
                    file = name,
                    error = format!("{error:#}"),
                    "compiled WebAssembly belongs to another engine version; compiling it again"
                );
            })
            .ok()
    }

    /// Stores compiled code; a failure only makes the next start slower.
    pub(crate) fn store(&self, name: &str, code: &Code) {
        let stored = code
            .serialize()
            .map_err(io::Error::other)
            .and_then(|body| self.write(name, &body))
            .and_then(|()| self.make_room(name));
        if let Err(error) = stored {
            tracing::warn!(file = name, %error, "failed to cache compiled WebAssembly");
        }
    }

    /// Reads and authenticates a file; its name is authenticated too, so that files cannot be swapped.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = File::open(self.folder.join(name))?;
        let mut body = Vec::new();
        let mut tag = [0_u8; MAC_BYTES];
        (&file).read_exact(&mut tag)?;
        file.take(MAX_FILE_BYTES).read_to_end(&mut body)?;
        self.mac(name, &body)
            .verify_slice(&tag)
            .map_err(|_| io::Error::other("not written by this installation"))?;
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

    /// Removes the oldest files if the folder exceeds its limit.
    fn make_room(&self, newest: &str) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            files.push((metadata.modified()?, metadata.len(), path));
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if total <= MAX_TOTAL_BYTES {
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

/// Bytes whose MAC shows that this installation wrote them.
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

/// Derives a key for this use from the secret.
fn keyed(secret: &[u8]) -> io::Result<Hmac<Sha256>> {
    let mut derive = Hmac::<Sha256>::new_from_slice(secret).map_err(io::Error::other)?;
    derive.update(b"haft: compiled WebAssembly");
    Hmac::new_from_slice(&derive.finalize().into_bytes()).map_err(io::Error::other)
}
