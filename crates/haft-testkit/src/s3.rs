//! An S3 service on loopback, with one bucket and one key.

use axum::Router;
use axum::error_handling::HandleError;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;

use crate::upstream::Upstream;

/// The bucket.
pub const BUCKET: &str = "haft-test";
/// The name of the key.
pub const KEY_ID: &str = "haft";
/// The key.
pub const KEY: &str = "haft-test-key";

/// A running service; it ends when this is dropped.
pub struct S3 {
    /// The address of the service.
    pub endpoint: String,
    /// The folder with its objects.
    pub folder: TempDir,
    _server: Upstream,
}

impl S3 {
    /// Starts a service that checks signatures.
    pub async fn start() -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join(BUCKET))?;
        let files =
            FileSystem::new(folder.path()).map_err(|error| std::io::Error::other(format!("{error:?}")))?;
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(KEY_ID, KEY));
        let service =
            tower::ServiceExt::<axum::extract::Request>::map_response(builder.build(), |response| {
                let (parts, body) = s3s::HttpResponse::into_parts(response);
                axum::http::Response::from_parts(parts, axum::body::Body::new(body)).into_response()
            });
        let service = HandleError::new(service, |_| std::future::ready(StatusCode::INTERNAL_SERVER_ERROR));
        let server = Upstream::serve(Router::new().fallback_service(service)).await?;
        Ok(Self { endpoint: format!("http://{}", server.address), folder, _server: server })
    }
}
