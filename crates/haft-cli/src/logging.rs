//! Logs go to stderr.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

use crate::config::{LogFormat, LogSettings};
use crate::output::Output;

/// Starts logging for the rest of the process.
pub(crate) fn start(log: &LogSettings, output: &Output) {
    // What goes wrong with an MCP server is told by haft, without its secrets; the library would tell it with them.
    let filter = EnvFilter::try_new(format!("rmcp=off,{}", log.level))
        .unwrap_or_else(|_| EnvFilter::new("rmcp=off,info"));
    let registry = tracing_subscriber::registry().with(filter);
    // A second start, which only tests could make, changes nothing.
    let _ = match log.format {
        LogFormat::Text => {
            registry.with(fmt::layer().with_ansi(output.has_color()).with_writer(std::io::stderr)).try_init()
        }
        LogFormat::Json => registry.with(fmt::layer().json().with_writer(std::io::stderr)).try_init(),
    };
}
