//! The examples of the guides in `docs/` are compiled and run with the documentation tests.

#[doc = include_str!("../../../docs/typed-functions.md")]
struct TypedFunctions;

#[doc = include_str!("../../../docs/testing-tools.md")]
struct TestingTools;

#[doc = include_str!("../../../docs/library.md")]
struct Library;

#[doc = include_str!("../../../docs/middleware.md")]
struct Middleware;
