//! Saved requests of API clients such as Postman and Bruno: each becomes an `http` tool.
//!
//! The readers of the clients' formats produce a [`Collection`]; [`import`] converts it. Variables become arguments, or
//! secrets if they are credentials. Scripts are never run.

mod auth;
mod body;
mod draft;
mod import;
mod url;

use std::collections::BTreeMap;

pub(crate) use import::import;

/// A collection of saved requests.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) variables: BTreeMap<String, Variable>,
    pub(crate) requests: Vec<SavedRequest>,
    /// The number of scripts of the collection and its folders.
    pub(crate) scripts: usize,
}

/// A variable of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) value: Option<String>,
    pub(crate) is_secret: bool,
}

/// A saved request.
#[derive(Debug, Default)]
pub(crate) struct SavedRequest {
    pub(crate) name: String,
    /// The folders that it is in, from the outermost.
    pub(crate) folders: Vec<String>,
    pub(crate) description: String,
    pub(crate) method: String,
    /// The URL, with or without its query.
    pub(crate) url: String,
    /// The query parameters; if there are none, those of the URL.
    pub(crate) query: Vec<Field>,
    /// The values of `:name` in the path.
    pub(crate) path: Vec<Field>,
    pub(crate) headers: Vec<Field>,
    pub(crate) auth: SavedAuth,
    pub(crate) body: SavedBody,
    pub(crate) has_script: bool,
    pub(crate) warnings: Vec<(&'static str, String)>,
}

/// A parameter, header or form field.
#[derive(Debug, Clone, Default)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) description: String,
    pub(crate) is_disabled: bool,
    pub(crate) is_file: bool,
}

/// The authentication of a request.
#[derive(Debug, Clone, Default)]
pub(crate) enum SavedAuth {
    #[default]
    Nothing,
    Bearer(String),
    Basic {
        username: String,
        password: String,
    },
    ApiKey {
        name: String,
        value: String,
        in_query: bool,
    },
    ClientCredentials {
        token_url: String,
        client_id: String,
        client_secret: String,
        scope: String,
    },
    /// An OAuth flow that needs a person.
    Token,
    Unsupported(String),
}

/// The body of a request.
#[derive(Debug, Clone, Default)]
pub(crate) enum SavedBody {
    #[default]
    Nothing,
    /// A text and its media type.
    Text(String, Option<&'static str>),
    Form(Vec<Field>),
    Multipart(Vec<Field>),
    Graphql {
        query: String,
        variables: String,
    },
    File,
}
