//! Query parameters, in every spelling (`page_size`, `pageSize`), and pages of lists.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use haft_core::page;
use haft_core::{Timestamp, problem::excerpt};
use haft_store::ListPage;
use utoipa::IntoParams;

use crate::error::ApiError;
use haft_platform::tokens;

/// The page of a list, as the OpenAPI document shows it; [`Params::page`] parses it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameters")]
pub(crate) struct PageParams {
    /// The maximum number of items; larger values than 500 (100 for calls, 5000 for summaries of tools) are lowered.
    #[param(minimum = 1, maximum = 2_147_483_647, example = 50)]
    page_size: Option<u32>,
    /// The same as `page_size`.
    #[param(minimum = 1, maximum = 2_147_483_647)]
    recommended_page_size: Option<u32>,
    /// The same as `page_size`.
    #[param(minimum = 1, maximum = 2_147_483_647)]
    limit: Option<u32>,
    /// The `next_page_token` of the previous page.
    page_token: Option<String>,
    /// How many items to skip.
    #[param(minimum = 0, maximum = 2_147_483_647)]
    skip: Option<u32>,
}

/// The query of a request: normalized names and values, in their order.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Self::default());
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|error| ApiError::bad_request(format!("invalid query string: {error}")))?;
        // PostgreSQL cannot compare such a value, and nothing contains one.
        if let Some((name, _)) = pairs.iter().find(|(_, value)| value.contains('\0')) {
            let name = excerpt(name, 60);
            return Err(ApiError::bad_request(format!("invalid `{name}`: contains a NUL character")));
        }
        Ok(Self(pairs.into_iter().map(|(name, value)| (normalize(&name), value)).collect()))
    }
}

/// `bundleIDs`, `bundle_ids` and `bundle-ids` are the same parameter.
pub(crate) fn normalize(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl Params {
    /// Returns a parameter by its `snake_case` name; an empty value counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.last(name).filter(|text| !text.is_empty())
    }

    /// Returns the last value of a parameter.
    fn last(&self, name: &str) -> Option<&str> {
        self.values(name).next_back()
    }

    fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        let name = if self.0.is_empty() { String::new() } else { normalize(name) };
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Parses a parameter.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, ApiError> {
        self.get(name).map(|text| text.parse().map_err(|_| invalid(name, text, expected))).transpose()
    }

    /// Parses a boolean.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            None | Some("false" | "0" | "no") => Ok(false),
            Some("true" | "1" | "yes") => Ok(true),
            Some(text) => Err(invalid(name, text, "`true` or `false`")),
        }
    }

    /// Parses one of a set of values.
    pub(crate) fn choice<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        values: &str,
    ) -> Result<Option<T>, ApiError> {
        // An empty value is not one of the values.
        self.last(name)
            .map(|text| parse(text).ok_or_else(|| invalid(name, text, &format!("one of {values}"))))
            .transpose()
    }

    /// Parses any number of a set of values: comma-separated, or in repeated parameters.
    pub(crate) fn choices<T: PartialEq>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        values: &str,
    ) -> Result<Vec<T>, ApiError> {
        let mut chosen = Vec::new();
        for text in self.values(name).flat_map(|list| list.split(',')) {
            let value = parse(text.trim())
                .ok_or_else(|| invalid(name, text, &format!("one or more of {values}, comma-separated")))?;
            if !chosen.contains(&value) {
                chosen.push(value);
            }
        }
        Ok(chosen)
    }

    /// Parses a time, or a period before now.
    pub(crate) fn time(&self, name: &str, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
        let parse = |text: &str| {
            let ago = || tokens::lifetime(text).ok().and_then(|time| now.checked_sub(time).ok());
            text.parse().ok().or_else(ago).ok_or_else(|| {
                invalid(
                    name,
                    text,
                    "a time such as `2026-01-31T12:00:00Z`, or a period such as `24h` or `7d`",
                )
            })
        };
        self.get(name).map(parse).transpose()
    }

    /// Parses a comma-separated list.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let text = self.get(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// Parses a number of items. OpenAPI has no type of 32 bits without a sign, so half of the range is enough.
    fn count(&self, name: &str) -> Result<Option<u32>, ApiError> {
        let expected = "an integer from 0 to 2147483647";
        if self.values(name).count() > 1 {
            return Err(ApiError::bad_request(format!(
                "`{name}` occurs more than once; expected {expected}"
            )));
        }
        let number = self.parsed::<i32>(name, expected)?;
        let number = number.map(u32::try_from);
        number.transpose().map_err(|_| invalid(name, self.get(name).unwrap_or_default(), expected))
    }

    /// Parses the requested page.
    pub(crate) fn page(&self, list: &'static str) -> Result<Page, ApiError> {
        self.page_up_to(list, page::MAX_SIZE)
    }

    /// Parses the requested page of a list that is usually short: the default size is the maximum.
    pub(crate) fn long_page(&self, list: &'static str) -> Result<Page, ApiError> {
        let page = self.page(list)?;
        let names = ["page_size", "recommended_page_size", "limit"];
        let has_size = names.into_iter().any(|name| self.get(name).is_some());
        Ok(if has_size { page } else { Page { size: page::MAX_SIZE, ..page } })
    }

    /// Parses the requested page of a list with a page size limit of its own.
    pub(crate) fn page_up_to(&self, list: &'static str, max_size: u32) -> Result<Page, ApiError> {
        let mut size = self.count("page_size")?;
        for other in ["recommended_page_size", "limit"] {
            size = size.or(self.count(other)?);
        }
        let size = size.unwrap_or(page::DEFAULT_SIZE);
        if size == 0 {
            return Err(ApiError::bad_request("invalid `page_size`: `0`; expected at least 1"));
        }
        let after = self.get("page_token").map(|token| page::decode(list, token)).transpose()?;
        let skip = self.count("skip")?.unwrap_or(0);
        Ok(Page { list, size: size.min(max_size), skip, after })
    }
}

fn invalid(name: &str, value: &str, expected: &str) -> ApiError {
    let value = excerpt(value, 60);
    ApiError::bad_request(format!("invalid `{name}`: `{value}`; expected {expected}"))
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    list: &'static str,
    /// The maximum number of items.
    pub size: u32,
    /// How many items to skip.
    pub skip: u32,
    /// The position of the last item of the previous page.
    pub after: Option<String>,
}

impl Page {
    /// Selects the page from a list that is sorted by `key`; returns it with the token of the next page.
    pub(crate) fn select<T>(&self, items: Vec<T>, key: impl Fn(&T) -> String) -> (Vec<T>, Option<String>) {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        let start = match &self.after {
            Some(after) => items.partition_point(|item| key(item) <= *after),
            None => 0,
        };
        let start = start.saturating_add(skip).min(items.len());
        let more = items.len() - start > size;
        let selected: Vec<T> = items.into_iter().skip(start).take(size).collect();
        let next = selected.last().filter(|_| more).map(|last| page::encode(self.list, &key(last)));
        (selected, next)
    }

    /// Returns the page of a list that the store orders by name, with one extra item, which shows whether there is a next page.
    pub(crate) fn of_store(&self) -> ListPage {
        ListPage { after: self.after.clone(), skip: self.skip, limit: self.size.saturating_add(1) }
    }

    /// Removes the item too many of [`Page::of_store`]; returns the token of the next page.
    pub(crate) fn truncate<T>(&self, items: &mut Vec<T>, name: impl Fn(&T) -> String) -> Option<String> {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let more = items.len() > size;
        items.truncate(size);
        items.last().filter(|_| more).map(|last| self.token(&name(last)))
    }

    /// Returns the token of the page after a position.
    pub(crate) fn token(&self, position: &str) -> String {
        page::encode(self.list, position)
    }

    /// Returns the token of the next page of a stored list, if this page is full.
    pub(crate) fn token_after<T>(
        &self,
        items: &[T],
        limit: u32,
        id: impl Fn(&T) -> String,
    ) -> Option<String> {
        let is_full = u32::try_from(items.len()).is_ok_and(|length| length == limit);
        items.last().filter(|_| is_full).map(|last| self.token(&id(last)))
    }

    /// Parses the position of the last item of the previous page.
    pub(crate) fn after<T: FromStr>(&self) -> Result<Option<T>, ApiError> {
        let position = self.after.as_deref().map(str::parse).transpose();
        Ok(position.map_err(|_| page::PageTokenError)?)
    }
}
