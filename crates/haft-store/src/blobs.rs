//! Large objects beside the database: in the home folder, or in a bucket that all nodes share.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use haft_core::catalog::StoreError;
use haft_core::secret::Secret;
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, Error, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// The compression of objects: cheap, because a caller waits for it.
const LEVEL: i32 = 1;
/// How long a request to the bucket is tried again. A call waits meanwhile.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_RETRIES: usize = 4;

/// Where large objects are.
#[derive(Debug, Clone, Default)]
pub struct BlobSettings {
    /// The bucket, such as `s3://bucket/prefix`; `None` is a folder in the home folder.
    pub url: Option<String>,
    /// The address of the service, unless it is Amazon's.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// The name of the key.
    pub access_key_id: Option<String>,
    /// The key. Without one, the role of the machine is used.
    pub secret_access_key: Option<Secret>,
}

/// Keeps large objects under names such as `results/default/018faf50-…`.
#[derive(Debug, Clone)]
pub struct Blobs {
    objects: Arc<dyn ObjectStore>,
    is_shared: bool,
}

impl Blobs {
    /// Opens the folder `blobs` in the home folder, or the bucket.
    pub fn open(home: &FilePath, settings: &BlobSettings) -> Result<Self, StoreError> {
        match &settings.url {
            Some(url) => Ok(Self { objects: bucket(url, settings)?, is_shared: true }),
            None => Ok(Self { objects: folder(&home.join("blobs"))?, is_shared: false }),
        }
    }

    /// Returns whether other nodes see the same objects.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Stores an object, compressed. When this returns, it survives a crash.
    pub async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), StoreError> {
        let stored = tokio::task::spawn_blocking(move || compress(&content)).await;
        let stored = stored.map_err(failed("compress an object"))?.map_err(failed("compress an object"))?;
        self.objects
            .put(&Path::from(name), PutPayload::from(stored))
            .await
            .map_err(failed("store an object"))?;
        Ok(())
    }

    /// Returns an object of at most `max_bytes`; `None` if it does not exist. A damaged one is an error.
    pub async fn get(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = match self.objects.get(&Path::from(name)).await {
            Ok(found) => found.bytes().await.map_err(failed("read an object"))?,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed("read an object")(error)),
        };
        let content = tokio::task::spawn_blocking(move || zstd::bulk::decompress(&bytes, max_bytes)).await;
        content.map_err(failed("read an object"))?.map_err(failed("read a damaged object")).map(Some)
    }

    /// Stores a file as it is.
    pub async fn put_file(&self, name: &str, file: &FilePath) -> Result<(), StoreError> {
        let mut file = File::open(file).await.map_err(failed("read a file"))?;
        let mut writer = BufWriter::new(Arc::clone(&self.objects), Path::from(name));
        let copied = tokio::io::copy(&mut file, &mut writer).await;
        if let Err(error) = copied {
            // What was uploaded so far would be kept, and paid for.
            let _ = writer.abort().await;
            return Err(failed("store a file")(error));
        }
        writer.shutdown().await.map_err(failed("store a file"))
    }

    /// Writes an object to a file as it is; returns whether it exists.
    pub async fn get_file(&self, name: &str, file: &FilePath) -> Result<bool, StoreError> {
        let found = match self.objects.get(&Path::from(name)).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(failed("read a file")(error)),
        };
        let mut parts = found.into_stream();
        let mut file = File::create(file).await.map_err(failed("write a file"))?;
        while let Some(part) = parts.next().await {
            let part = part.map_err(failed("read a file"))?;
            file.write_all(&part).await.map_err(failed("write a file"))?;
        }
        file.sync_all().await.map_err(failed("write a file"))?;
        Ok(true)
    }

    /// Lists the objects below a name: their names, and how much space they take.
    pub async fn list(&self, below: &str) -> Result<Vec<(String, u64)>, StoreError> {
        let found = self.objects.list(Some(&Path::from(below)));
        let names = found.map_ok(|object| (object.location.to_string(), object.size)).try_collect();
        names.await.map_err(failed("list objects"))
    }

    /// Removes an object; one that does not exist is fine.
    pub async fn remove(&self, name: &str) -> Result<(), StoreError> {
        match self.objects.delete(&Path::from(name)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("remove an object")(error)),
        }
    }
}

fn folder(path: &FilePath) -> Result<Arc<dyn ObjectStore>, StoreError> {
    std::fs::create_dir_all(path).map_err(failed("create the folder of objects"))?;
    let objects = LocalFileSystem::new_with_prefix(path).map_err(failed("open the folder of objects"))?;
    Ok(Arc::new(objects.with_fsync(true)))
}

fn bucket(url: &str, settings: &BlobSettings) -> Result<Arc<dyn ObjectStore>, StoreError> {
    const OPEN: &str = "open the bucket of `blob_url`";
    let place =
        url.strip_prefix("s3://").ok_or_else(|| failed(OPEN)("the URL does not start with `s3://`"))?;
    // The client of the bucket, `reqwest`, takes the provider of the process; `haft` and most programs have installed one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let retry =
        RetryConfig { max_retries: MAX_RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_checksum_algorithm(Checksum::SHA256)
        .with_region(settings.region.as_deref().unwrap_or("us-east-1"));
    if let Some(endpoint) = &settings.endpoint {
        // Plain HTTP is fine for a service on the same network; only the operator can configure it.
        let options = ClientOptions::new().with_allow_http(endpoint.starts_with("http://"));
        builder = builder.with_endpoint(endpoint).with_client_options(options);
    }
    if let (Some(id), Some(key)) = (&settings.access_key_id, &settings.secret_access_key) {
        builder = builder.with_access_key_id(id).with_secret_access_key(key.expose());
    }
    let objects = builder.build().map_err(failed(OPEN))?;
    Ok(match prefix.trim_matches('/') {
        "" => Arc::new(objects),
        prefix => Arc::new(PrefixStore::new(objects, prefix)),
    })
}

/// Compresses with a checksum, by which damage is noticed.
fn compress(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true))?;
    compressor.compress(content)
}

fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    action: &'static str,
) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::unavailable(action, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> (tempfile::TempDir, Blobs) {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(home.path(), &BlobSettings::default()).unwrap();
        (home, blobs)
    }

    #[tokio::test]
    async fn objects_are_kept_listed_and_removed() {
        let (home, blobs) = local();
        let content = b"text ".repeat(10_000);
        blobs.put("results/default/a", content.clone()).await.unwrap();
        blobs.put("other/b", b"x".to_vec()).await.unwrap();
        assert_eq!(blobs.get("results/default/a", content.len()).await.unwrap(), Some(content.clone()));
        assert_eq!(blobs.get("results/default/c", 10).await.unwrap(), None);
        let stored = std::fs::metadata(home.path().join("blobs/results/default/a")).unwrap().len();
        assert_eq!(blobs.list("results").await.unwrap(), [("results/default/a".to_owned(), stored)]);
        assert!(stored < 1000, "{stored} bytes: not compressed");
        assert!(blobs.get("results/default/a", content.len() - 1).await.is_err(), "larger than the limit");
        blobs.remove("results/default/a").await.unwrap();
        blobs.remove("results/default/a").await.unwrap();
        assert_eq!(blobs.get("results/default/a", 100).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_damaged_object_is_an_error() {
        let (home, blobs) = local();
        let content: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        blobs.put("x", content.clone()).await.unwrap();
        let path = home.path().join("blobs/x");
        let mut stored = std::fs::read(&path).unwrap();
        let middle = stored.len() / 2;
        stored[middle] ^= 1;
        std::fs::write(&path, stored).unwrap();
        assert!(blobs.get("x", content.len()).await.is_err());
    }

    #[test]
    fn the_url_of_a_bucket_is_checked() {
        let open = |url: &str| bucket(url, &BlobSettings::default()).map(|_| ());
        open("s3://bucket/some/prefix").unwrap();
        assert!(open("https://bucket").unwrap_err().to_string().contains("blob_url"));
    }
}
