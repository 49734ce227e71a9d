//! The description of the routes of resources in the OpenAPI document: in code, because they are the same for every kind.

use axum::routing::MethodRouter;
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{ContentBuilder, HttpMethod, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{IntoParams, PartialSchema, ToSchema};
use utoipa_axum::router::UtoipaMethodRouter;

use super::routed_kind::{Application, RoutedKind};
use crate::error::ErrorBody;
use crate::reply::{Success, SuccessStatus};

/// A route of a kind of resource, with its description.
pub(super) struct Route {
    path: String,
    method: HttpMethod,
    operation: OperationBuilder,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Route {
    /// Describes a route below `PATH/{ref}` that returns a `T`.
    pub(super) fn new<S: RoutedKind, T: ToSchema>(method: HttpMethod, below: &str, summary: String) -> Self {
        let reference = ParameterBuilder::new()
            .name(S::REFERENCE)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some("Slug or id"))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .example(Some(json!(S::EXAMPLE)))
            .build();
        let below = format!("/{{{}}}{below}", S::REFERENCE);
        Self::all::<S, T>(method, &below, summary).parameter(reference).error("404", "")
    }

    /// Describes a route below `PATH` that returns a `T`.
    pub(super) fn all<S: RoutedKind, T: ToSchema>(method: HttpMethod, below: &str, summary: String) -> Self {
        let operation = OperationBuilder::new().tag(S::TAG).summary(Some(summary));
        let path = format!("{}{below}", S::PATH);
        let is_new = below.is_empty() && matches!(method, HttpMethod::Post);
        let route = Self { path, method, operation, schemas: Vec::new() };
        route.returns::<T>(if is_new { "201" } else { "200" }, "")
    }

    /// Adds a response.
    pub(super) fn returns<T: ToSchema>(mut self, status: &str, description: &str) -> Self {
        let name = format!("Success_{}", T::name());
        self.schemas.push((name.clone(), Success::<T>::schema()));
        self.schemas.push((SuccessStatus::name().into_owned(), SuccessStatus::schema()));
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        self.operation = self.operation.response(status, response(&name, description));
        self
    }

    /// Adds an error.
    pub(super) fn error(mut self, status: &str, description: &str) -> Self {
        self.operation = self.operation.response(status, response(&ErrorBody::name(), description));
        self
    }

    /// Adds the parameters that a type describes.
    pub(super) fn parameters<P: IntoParams>(mut self) -> Self {
        for parameter in P::into_params(|| Some(ParameterIn::Query)) {
            self.operation = self.operation.parameter(parameter);
        }
        self
    }

    pub(super) fn parameter(mut self, parameter: Parameter) -> Self {
        self.operation = self.operation.parameter(parameter);
        self
    }

    pub(super) fn conflict(self, description: &str) -> Self {
        self.error("409", description)
    }

    pub(super) fn body<T: ToSchema>(mut self) -> Self {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(T::name()))).build();
        let body =
            RequestBodyBuilder::new().content("application/json", content).required(Some(Required::True));
        self.operation = self.operation.request_body(Some(body.build()));
        self
    }

    pub(super) fn handled_by(self, handler: MethodRouter<Application>) -> UtoipaMethodRouter<Application> {
        let mut paths = Paths::new();
        paths.add_path_operation(&self.path, vec![self.method], self.operation.build());
        (self.schemas, paths, handler)
    }
}

fn response(schema: &str, description: &str) -> utoipa::openapi::Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    ResponseBuilder::new().description(description).content("application/json", content).build()
}

/// Describes a query parameter.
pub(super) fn query(name: &str, kind: Type, description: &str) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(kind);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// Describes the number of a revision in a path.
pub(super) fn revision_number(name: &str) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(i32::MAX));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("Number of the revision"))
        .schema(Some(schema))
        .example(Some(json!(1)))
        .build()
}

/// Describes the header with the revision that an update expects.
pub(super) fn if_match() -> Parameter {
    ParameterBuilder::new()
        .name("If-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The newest revision that you know"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .example(Some(json!("1")))
        .build()
}
