//! Measures haft and a plain axum handler in one run and prints ratios, so that a noisy machine affects both.
//!
//! `haft-bench` runs everything, `haft-bench agents`, `calls`, `mcp`, `proxied`, `confined`, `search`, `library`, `python`, `wasm`, `queue`,
//! `tenants` or `workspace` one part; `retrieval FOLDER` needs the files of the Cranfield collection;
//! `serve-plain`, `serve-proxy`, `serve-model`, `serve-haft-agents`, `serve-rmcp`, `serve-rmcp-stdio` and `serve-haft` are the servers it starts, and
//! `load disk|os CLIENTS SECONDS` puts load on one of them, for use with a profiler.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts servers and reads system information")]

mod agents;
mod confined;
mod library;
mod load;
mod mcp;
mod mcp_calls;
mod peers;
mod process;
mod proxied;
mod python;
mod queue;
mod retrieval;
mod search;
mod servers;
mod tables;
mod tenants;
mod wasm;
mod workspace;

use anyhow::{Result, bail};
use haft_server::settings::LedgerSync;

/// The allocator of the `haft` binary; the plain server uses it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => tables::run_all(),
        ["agents"] => tokio::runtime::Runtime::new()?.block_on(agents::run()),
        ["python"] => tokio::runtime::Runtime::new()?.block_on(python::run()),
        ["confined"] => tokio::runtime::Runtime::new()?.block_on(confined::run()),
        ["library"] => tokio::runtime::Runtime::new()?.block_on(library::run()),
        ["search"] => tokio::runtime::Runtime::new()?.block_on(search::run(&[1000, 10_000, 100_000])),
        ["search", count] => tokio::runtime::Runtime::new()?.block_on(search::run(&[count.parse()?])),
        ["wasm"] => tokio::runtime::Runtime::new()?.block_on(wasm::run()),
        ["queue"] => tokio::runtime::Runtime::new()?.block_on(queue::run()),
        ["tenants"] => tokio::runtime::Runtime::new()?.block_on(tenants::run(100_000)),
        ["tenants", count] => tokio::runtime::Runtime::new()?.block_on(tenants::run(count.parse()?)),
        ["retrieval", folder] => retrieval::run(std::path::Path::new(folder)),
        ["workspace"] => workspace::run(&[10_000, 100_000]),
        ["workspace", count] => workspace::run(&[count.parse()?]),
        ["calls"] => tables::run_calls(),
        ["mcp"] => tokio::runtime::Runtime::new()?.block_on(mcp::run()),
        ["proxied"] => tokio::runtime::Runtime::new()?.block_on(proxied::run()),
        ["load", durability, clients, seconds] => {
            tables::run_load(durability, clients.parse()?, seconds.parse()?)
        }
        ["serve-model"] => agents::model(),
        ["serve-haft-agents", home, model] => servers::haft_with_model(home, model),
        ["serve-rmcp"] => servers::rmcp(),
        ["serve-rmcp-stdio"] => servers::rmcp_stdio(),
        ["serve-plain"] => servers::plain(),
        ["serve-proxy", url] => servers::proxy(url),
        ["serve-haft", home, durability] => {
            servers::haft(home, if durability == &"disk" { LedgerSync::Always } else { LedgerSync::Os }, None)
        }
        ["serve-haft-on", home, database] => servers::haft(home, LedgerSync::Auto, Some(database)),
        _ => bail!(
            "usage: haft-bench [agents | calls | mcp | proxied | confined | search [TOOLS] | library | python | wasm | queue | tenants [TOOLS] | workspace [FILES] | retrieval FOLDER]"
        ),
    }
}
