//! Where commands send their requests.

use url::Url;

use crate::contexts::StoredContext;
use crate::server_url::shown;

/// Where the requests of a command go.
#[derive(Debug)]
pub(crate) enum Target {
    /// To the server that runs on the home folder of this machine, or to the home folder itself.
    Home,
    /// To a server that `--server` or `HAFT_SERVER` names.
    Server(Url),
    /// To the server of a context.
    Context(Box<StoredContext>, Selection),
}

/// What selects a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// `--context` or `HAFT_CONTEXT`.
    Named,
    /// Nothing else is selected.
    Current,
}

impl Target {
    /// Returns the URL of a named server; `None` for the home folder.
    pub(crate) fn url(&self) -> Option<&Url> {
        match self {
            Self::Home => None,
            Self::Server(url) => Some(url),
            Self::Context(context, _) => Some(&context.server),
        }
    }

    /// Returns the context, if one is selected.
    pub(crate) fn context(&self) -> Option<&StoredContext> {
        match self {
            Self::Home | Self::Server(_) => None,
            Self::Context(context, _) => Some(context),
        }
    }

    /// Returns a named server with what selects it, for messages; `None` for the home folder.
    pub(crate) fn remote(&self) -> Option<String> {
        match self {
            Self::Home => None,
            Self::Server(url) => Some(format!("the server `{}`", shown(url))),
            Self::Context(context, Selection::Named) => {
                Some(format!("the context `{}` ({})", context.name, shown(&context.server)))
            }
            Self::Context(context, Selection::Current) => {
                Some(format!("the current context `{}` ({})", context.name, shown(&context.server)))
            }
        }
    }
}
