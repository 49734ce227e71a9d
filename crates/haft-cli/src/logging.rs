//! Logging to stderr.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

use crate::config::{LogFormat, LogSettings};
use crate::output::Output;

/// Starts logging.
pub(crate) fn start(log: &LogSettings, output: &Output) {
    // haft logs errors of MCP servers without secrets; the logs of rmcp could contain them.
    let filter = EnvFilter::try_new(format!("rmcp=off,{}", log.level))
        .unwrap_or_else(|_| EnvFilter::new("rmcp=off,info"));
    let registry = tracing_subscriber::registry().with(filter);
    // A second initialisation, possible only in tests, is ignored.
    let _ = match log.format {
        LogFormat::Text => {
            registry.with(fmt::layer().with_ansi(output.has_color()).with_writer(std::io::stderr)).try_init()
        }
        LogFormat::Json => registry.with(fmt::layer().json().with_writer(std::io::stderr)).try_init(),
    };
}
