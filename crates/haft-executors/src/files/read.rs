//! Reads a file.

use std::io::Read as _;
use std::os::fd::AsFd as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::implementation::Encoding;
use rustix::io::Errno;
use serde_json::{Value, json};

use super::beneath;
use super::error::FileError;
use super::media::media_type;
use super::roots::Root;

/// A read operation.
#[derive(Debug, Clone)]
pub(super) struct FileRead {
    pub(super) root: Root,
    pub(super) encoding: Encoding,
    /// The maximum size of the value.
    pub(super) max_bytes: u64,
}

impl FileRead {
    /// Reads the file; blocks.
    pub(super) fn run(&self, path: &str) -> Result<Value, FileError> {
        let root = self.root.open()?;
        let (file, stat) = beneath::open_file(root.as_fd(), path)?;
        let max = match self.encoding {
            Encoding::Utf8 => self.max_bytes,
            Encoding::Base64 | Encoding::Binary => self.max_bytes / 4 * 3,
        };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > max {
            return Err(too_large(path, size, max));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        // The file may grow while it is read, and kernel files report no size.
        let read = file.take(max.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| FileError::of(path, Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > max {
            return Err(too_large(path, size, max));
        }
        self.value(path, bytes)
    }

    fn value(&self, path: &str, bytes: Vec<u8>) -> Result<Value, FileError> {
        match self.encoding {
            Encoding::Utf8 => String::from_utf8(bytes).map(Value::String).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                let message =
                    format!("is not UTF-8 text (invalid byte at offset {at}); use `encoding: base64`");
                FileError::unusable(path, "not_utf8", message)
            }),
            Encoding::Base64 => Ok(Value::String(STANDARD.encode(&bytes))),
            Encoding::Binary => {
                let name = path.rsplit('/').next().unwrap_or(path);
                Ok(json!({
                    "name": name,
                    "media_type": media_type(name),
                    "size": bytes.len(),
                    "base64": STANDARD.encode(&bytes),
                }))
            }
        }
    }
}

fn too_large(path: &str, size: u64, max: u64) -> FileError {
    let message = format!("has at least {size} bytes, which exceeds `limits.max_response_bytes` ({max})");
    FileError::unusable(path, "too_large", message)
}
