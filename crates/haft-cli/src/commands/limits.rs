//! `haft limits`: shows the limits of the tenant and how much of them is used.

use haft_api::limit::{LimitList, LimitView};

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/limits")).await?;
    context.output.show(&data, |output, list: LimitList| {
        output.table(
            &["LIMIT", "OF", "VALUE", "USED", "RESETS IN"],
            list.limits.into_iter().map(row).collect(),
        )?;
        if list.omitted > 0 {
            output.note(&format!("{} limits of tools and tokens are not shown", list.omitted));
        }
        Ok(())
    })
}

fn row(limit: LimitView) -> Vec<String> {
    let value = limit.value.to_string();
    vec![
        limit.name.into_owned(),
        limit.subject.unwrap_or_default(),
        match limit.per {
            Some(per) => format!("{value} per {per}"),
            None => value,
        },
        view::optional(limit.used.as_ref()),
        limit.reset_seconds.map(|seconds| format!("{seconds}s")).unwrap_or_default(),
    ]
}
