//! Measures haft next to a plain axum handler, in one run, and prints ratios: the machine may be noisy, but
//! it is equally noisy for both.
//!
//! `haft-bench` runs everything, `haft-bench calls`, `mcp`, `proxied`, `confined`, `library`, `python` or `wasm` one part alone;
//! `serve-plain`, `serve-proxy`, `serve-rmcp`, `serve-rmcp-stdio` and `serve-haft` are the servers it starts, and
//! `load disk|os CLIENTS SECONDS` loads one of them for long enough to look at it with a profiler.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts servers and reads the machine")]

mod confined;
mod library;
mod load;
mod mcp;
mod mcp_calls;
mod peers;
mod process;
mod proxied;
mod python;
mod servers;
mod tables;
mod wasm;

use anyhow::{Result, bail};

/// The allocator of the binary `haft`; the plain server has it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => tables::run_all(),
        ["python"] => tokio::runtime::Runtime::new()?.block_on(python::run()),
        ["confined"] => tokio::runtime::Runtime::new()?.block_on(confined::run()),
        ["library"] => tokio::runtime::Runtime::new()?.block_on(library::run()),
        ["wasm"] => tokio::runtime::Runtime::new()?.block_on(wasm::run()),
        ["calls"] => tables::run_calls(),
        ["mcp"] => tokio::runtime::Runtime::new()?.block_on(mcp::run()),
        ["proxied"] => tokio::runtime::Runtime::new()?.block_on(proxied::run()),
        ["load", durability, clients, seconds] => {
            tables::run_load(durability, clients.parse()?, seconds.parse()?)
        }
        ["serve-rmcp"] => servers::rmcp(),
        ["serve-rmcp-stdio"] => servers::rmcp_stdio(),
        ["serve-plain"] => servers::plain(),
        ["serve-proxy", url] => servers::proxy(url),
        ["serve-haft", home, durability] => servers::haft(home, durability == &"disk"),
        _ => bail!("usage: haft-bench [calls | mcp | proxied | confined | library | python | wasm]"),
    }
}
