//! Query parameters in both spellings of the documents (`page_size`, `pageSize`), and pages of lists.

use std::collections::HashMap;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use haft_core::page;

use crate::error::ApiError;

/// The query of a request.
#[derive(Debug, Default)]
pub(crate) struct Params(HashMap<String, String>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Self::default());
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|error| ApiError::bad_request(format!("the query cannot be read: {error}")))?;
        Ok(Self(pairs.into_iter().map(|(name, value)| (fold(&name), value)).collect()))
    }
}

/// `bundleIDs`, `bundle_ids` and `bundle-ids` are the same parameter.
fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl Params {
    /// Returns a parameter by its `snake_case` name; an empty one counts as left out.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&fold(name)).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Reads a parameter.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, ApiError> {
        self.get(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    let shown = haft_core::problem::excerpt(text, 60);
                    ApiError::bad_request(format!("`{name}` is `{shown}`; expected {expected}"))
                })
            })
            .transpose()
    }

    /// Reads a switch.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            None | Some("false" | "0" | "no") => Ok(false),
            Some("true" | "1" | "yes") => Ok(true),
            Some(_) => Err(ApiError::bad_request(format!("`{name}` must be `true` or `false`"))),
        }
    }

    /// Reads one of a set of words through its parser.
    pub(crate) fn choice<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        words: &str,
    ) -> Result<Option<T>, ApiError> {
        self.get(name)
            .map(|text| {
                parse(text).ok_or_else(|| {
                    let shown = haft_core::problem::excerpt(text, 60);
                    ApiError::bad_request(format!("`{name}` is `{shown}`; expected one of {words}"))
                })
            })
            .transpose()
    }

    /// Reads a list of words, separated by commas.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let text = self.get(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// Reads which page is wanted.
    pub(crate) fn page(&self, list: &'static str) -> Result<Page, ApiError> {
        let number = "a whole number";
        let mut size = self.parsed::<u32>("page_size", number)?;
        for other in ["recommended_page_size", "limit"] {
            size = size.or(self.parsed::<u32>(other, number)?);
        }
        let size = size.unwrap_or(page::DEFAULT_SIZE);
        if size == 0 {
            return Err(ApiError::bad_request("the page size must be at least 1"));
        }
        let after = self.get("page_token").map(|token| page::decode(list, token)).transpose()?;
        let skip = self.parsed::<u32>("skip", number)?.unwrap_or(0);
        Ok(Page { list, size: size.min(page::MAX_SIZE), skip, after })
    }
}

/// Which part of a list.
#[derive(Debug)]
pub(crate) struct Page {
    list: &'static str,
    /// How many items at most.
    pub size: u32,
    /// How many to pass over.
    pub skip: u32,
    /// The position of the last item of the page before.
    pub after: Option<String>,
}

impl Page {
    /// Cuts the page out of a list that is sorted by `key`; returns it with the token of the next page.
    pub(crate) fn cut<T>(&self, items: Vec<T>, key: impl Fn(&T) -> String) -> (Vec<T>, Option<String>) {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        let start = match &self.after {
            Some(after) => items.partition_point(|item| key(item) <= *after),
            None => 0,
        };
        let start = start.saturating_add(skip).min(items.len());
        let more = items.len() - start > size;
        let part: Vec<T> = items.into_iter().skip(start).take(size).collect();
        let next = part.last().filter(|_| more).map(|last| page::encode(self.list, &key(last)));
        (part, next)
    }

    /// Makes the token of the page after an item.
    pub(crate) fn token(&self, position: &str) -> String {
        page::encode(self.list, position)
    }
}
