//! The OpenAI-compatible endpoint: agents as models, for every client of `/v1/chat/completions` and `/v1/responses`.
//!
//! The files `*_request` read what clients send, `answer` turns the events of a run into the pieces of an answer, and
//! `*_response` and `*_stream` write it. Only `start` and `routes` know the run engine.

mod answer;
mod chat_request;
mod chat_response;
mod chat_stream;
mod content;
mod error;
mod fields;
mod models;
mod overrides;
mod responses_request;
mod responses_response;
mod responses_stream;
mod routes;
mod start;

#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod stream_tests;

pub(crate) use routes::router;
