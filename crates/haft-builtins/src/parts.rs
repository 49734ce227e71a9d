//! Creates all built-in tools of this crate.

use std::sync::Arc;

use haft_core::Clock;
use haft_core::executor::Prepared;
use haft_core::name::NameError;
use haft_core::spec::ToolSpec;
use haft_executors::egress::Egress;
use haft_executors::files::Files;
use haft_runtime::function::{Functions, blocking};

use crate::settings::PlatformSettings;
use crate::tool::function;
use crate::{bash, datetime, files, http_request, json_transform, mail, web_fetch, web_search, whatsapp};

/// The resources of the built-in tools.
#[derive(Clone)]
pub struct BuiltInParts {
    /// The client for outgoing connections.
    pub egress: Egress,
    /// The sandbox folders; without them there are no file tools.
    pub files: Option<Files>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The platform's settings for mail and search, used for tenants without their own.
    pub platform: PlatformSettings,
    /// The rate limit of `send_email`, and of `send_whatsapp`, in messages per minute; 0 means no limit.
    pub emails_per_minute: u32,
}

/// The default rate limit of `send_email` in messages per minute.
pub const EMAILS_PER_MINUTE: u32 = 10;

/// The definitions of the tools and the functions that they name.
pub struct BuiltIns {
    /// The definitions.
    pub specs: Vec<ToolSpec>,
    /// The functions, by the names of their tools.
    pub functions: Functions,
}

/// Creates all built-in tools. An invalid tool name, the only error, would be a bug.
pub fn built_ins(parts: &BuiltInParts) -> Result<BuiltIns, NameError> {
    let BuiltInParts { egress, files, clock, platform, emails_per_minute } = parts;
    let functions = Functions::default();
    let mut specs = Vec::new();
    if let Some(files) = files {
        specs.extend([
            files::read_file()?,
            files::write_file()?,
            add(&functions, files::append_file()?, function(files::AppendFile(files.clone()))),
            add(&functions, files::list_files()?, function(files::ListFiles(files.clone()))),
        ]);
    }
    specs.extend([
        bash::exec()?,
        bash::bash()?,
        add(
            &functions,
            mail::send_email(*emails_per_minute)?,
            function(mail::SendEmail::new(egress.clone(), platform.clone())),
        ),
        add(
            &functions,
            whatsapp::spec(*emails_per_minute)?,
            function(whatsapp::SendWhatsApp::new(egress.clone(), platform.clone())),
        ),
        add(&functions, http_request::spec()?, function(http_request::HttpRequest(egress.clone()))),
        add(&functions, web_fetch::spec()?, function(web_fetch::WebFetch(egress.clone()))),
        add(
            &functions,
            web_search::spec()?,
            function(web_search::WebSearch::new(egress.clone(), platform.clone())),
        ),
        add(&functions, json_transform::spec()?, blocking(json_transform::run)),
        add(&functions, datetime::spec()?, function(datetime::DatetimeUtils(Arc::clone(clock)))),
    ]);
    Ok(BuiltIns { specs, functions })
}

fn add(functions: &Functions, spec: ToolSpec, function: Arc<dyn Prepared>) -> ToolSpec {
    functions.insert(spec.name.as_str(), function);
    spec
}
