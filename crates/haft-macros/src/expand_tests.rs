//! The generated code, and the errors of invalid functions.
#![expect(clippy::too_many_lines, reason = "the snapshots of generated code are long")]

use proc_macro2::TokenStream;
use quote::quote;

use super::tool;

fn expand(options: TokenStream, item: &TokenStream) -> String {
    let file = syn::parse2(tool(options, item)).unwrap();
    prettyplease::unparse(&file)
}

#[test]
fn an_async_function() {
    let item = quote! {
        /// Finds pages.
        pub async fn find(
            context: &Context,
            /// What to look for
            query: &str,
            #[arg(default = 10, range = 1..=50)] limit: u32,
        ) -> Result<Vec<Hit>, Failure> {
            body()
        }
    };
    insta::assert_snapshot!(expand(quote!(pure, timeout = "30s"), &item), @r#"
    /// Finds pages.
    pub async fn find(
        context: &Context,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Hit>, Failure> {
        body()
    }
    #[doc(hidden)]
    #[allow(non_camel_case_types, dead_code, reason = "it has the name of its function")]
    pub struct find {}
    #[allow(deprecated, clippy::all, clippy::pedantic, reason = "written by #[tool]")]
    impl find {
        /// Makes the tool of the function [`find()`].
        pub fn tool() -> ::haft::ToolDef {
            #[allow(
                unused_imports,
                reason = "which of them fit is for the compiler to find"
            )]
            use ::haft::__private::{
                OpaqueDefault as _, ResultKind as _, SerializableDefault as _, ValueKind as _,
            };
            struct __HaftArguments {}
            impl ::haft::__private::schemars::JsonSchema for __HaftArguments {
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed("find")
                }
                fn json_schema(
                    generator: &mut ::haft::__private::schemars::SchemaGenerator,
                ) -> ::haft::__private::schemars::Schema {
                    #[allow(unused_mut, reason = "not every function has parameters")]
                    let mut properties = ::haft::__private::Properties::new(generator);
                    properties
                        .add::<
                            &str,
                        >(
                            ::haft::__private::Property::new("query")
                                .keyword("description", "What to look for"),
                        );
                    properties
                        .add::<
                            u32,
                        >(
                            ::haft::__private::Property::new("limit")
                                .keyword("minimum", 1i64)
                                .keyword("maximum", 50i64)
                                .default_value({
                                    let default = ::haft::__private::DefaultValue::<u32>(10);
                                    (&default).to_json()
                                }),
                        );
                    properties.schema()
                }
            }
            ::haft::ToolDef::from_parts::<
                __HaftArguments,
            >(
                    "find",
                    "Finds pages.",
                    ::haft::__private::async_function(|_call, _args| ::std::boxed::Box::pin(async move {
                        let argument_0 = _call;
                        let argument_1 = _args.get::<&str>("query")?;
                        let argument_2 = _args.get_or::<u32>("limit", || 10)?;
                        let returned = ::haft::__private::ReturnValue(
                            find(argument_0, argument_1, argument_2).await,
                        );
                        (&returned).converter().outcome(returned.0)
                    })),
                )
                .pure()
                .timeout(::core::time::Duration::from_millis(30000u64))
        }
    }
    "#);
}

#[test]
fn a_blocking_function_with_one_argument_type() {
    let item = quote! {
        /// Finds pages.
        fn find(Args(search): Args<Search>) {}
    };
    insta::assert_snapshot!(expand(quote!(name = "find-pages", crate = my::haft), &item), @r#"
    /// Finds pages.
    fn find(Args(search): Args<Search>) {}
    #[doc(hidden)]
    #[allow(non_camel_case_types, dead_code, reason = "it has the name of its function")]
    struct find {}
    #[allow(deprecated, clippy::all, clippy::pedantic, reason = "written by #[tool]")]
    impl find {
        /// Makes the tool of the function [`find()`].
        fn tool() -> my::haft::ToolDef {
            #[allow(
                unused_imports,
                reason = "which of them fit is for the compiler to find"
            )]
            use my::haft::__private::{
                OpaqueDefault as _, ResultKind as _, SerializableDefault as _, ValueKind as _,
            };
            my::haft::ToolDef::from_parts::<
                my::haft::__private::Args<Search>,
            >(
                "find-pages",
                "Finds pages.",
                my::haft::__private::blocking_function(|_call, _args| {
                    let argument_0 = my::haft::__private::Args(_args.all::<Search>()?);
                    let returned = my::haft::__private::ReturnValue(find(argument_0));
                    (&returned).converter().outcome(returned.0)
                }),
            )
        }
    }
    "#);
}

/// Returns the errors of a function, in order.
fn errors(options: TokenStream, item: &TokenStream) -> Vec<String> {
    let text = tool(options, item).to_string();
    let mut parts = text.split("compile_error ! {");
    parts.next();
    parts.map(|part| part.split_once(" }").map_or(part, |(message, _)| message).trim().to_owned()).collect()
}

#[test]
fn all_errors_are_reported_at_once() {
    let item = quote! {
        unsafe fn find<T>(&self, (a, b): (u8, u8), x: T, #[arg(size = 3)] y: u8) {}
    };
    let found = errors(quote!(fast, timeout = "soon", pure = 3, name = "a b", retry = 2), &item);
    insta::assert_snapshot!(found.join("\n"), @r#"
    "unknown option `fast`; known are: name = \"…\", description = \"…\", pure, timeout = \"30s\", retry(attempts = 3, backoff = \"1s\"), max_parallel = 4, elevated, crate = path"
    "not a duration; write it like `500ms`, `30s`, `5m` or `1m30s`, up to `1h`"
    "this option has no value: its name says all"
    "expected `retry(attempts = 3, backoff = \"1s\")`"
    "a model calls a tool with whatever it likes, so it has to be safe; take `unsafe` away"
    "a tool's function cannot be generic: its schema is made of the types of its parameters; write one function for each type (of lifetimes, only those left out are possible)"
    "a tool is a free function, without `self`; put what it needs in a `static`, or register a closure: `ToolDef::new(\"…\", move |args: Arguments| …)`"
    "an argument is known by its name; write a plain one here, and take the value apart inside of the function (only `Args(…): Args<…>` may be taken apart here)"
    "unknown option `size`; known are: default = value, range = 1..=50, one_of(\"a\", \"b\"), rename = \"…\""
    "a tool's name has letters, digits, `-` and `_`, not ' '"
    "the model has to know what `find` does: say it in a doc comment (`/// …`) above the function, or in `#[tool(description = \"…\")]`"
    "#);
}

#[test]
fn errors_in_options() {
    let item = quote!(
        #[doc = "x"]
        fn f() {}
    );
    let check = |options: TokenStream| errors(options, &item).join("\n");
    let found: Vec<String> = [
        quote!(name = f),
        quote!(description = " "),
        quote!(max_parallel = 0),
        quote!(max_parallel = -1),
        quote!(retry(3)),
        quote!(retry(backoff = "1s")),
        quote!(retry(attempts = 50)),
        quote!(timeout = "0s"),
        quote!(retry(attempts = 3, wait = "1s")),
        quote!(crate = "haft"),
        quote!(pure, pure),
        quote!(a::b),
        quote!("text"),
    ]
    .into_iter()
    .map(|options| format!("{options}: {}", check(options.clone())))
    .collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    name = f: "expected a text: `name = \"…\"`"
    description = " ": "the description is empty; say what the tool does"
    max_parallel = 0: "expected 1 or more: with 0, no call would ever run"
    max_parallel = - 1: "expected a number from 1 to 4294967295"
    retry (3): "expected `retry(attempts = 3, backoff = \"1s\")`"
    retry (backoff = "1s"): "expected `retry(attempts = 3, backoff = \"1s\")`"
    retry (attempts = 50): "at most 10 are allowed"
    timeout = "0s": "is no time at all; leave it out for the default"
    retry (attempts = 3 , wait = "1s"): "expected `retry(attempts = 3, backoff = \"1s\")`"
    crate = "haft": "expected where haft is found: `crate = my_name_of_haft`"
    pure , pure: "`pure` is said twice"
    a :: b: "unknown option; known are: name = \"…\", description = \"…\", pure, timeout = \"30s\", retry(attempts = 3, backoff = \"1s\"), max_parallel = 4, elevated, crate = path"
    "text": "expected identifier"
    "#);
}

#[test]
fn errors_in_arguments() {
    let check = |parameter: TokenStream| {
        let item = quote!(#[doc = "x"] fn f(#parameter) {});
        format!("{parameter}: {}", errors(TokenStream::new(), &item).join("\n"))
    };
    let found: Vec<String> = [
        quote!(#[arg(default = 1)] x: Option<u8>),
        quote!(#[arg(default)] x: u8),
        quote!(#[arg(range = 1..=5)] x: String),
        quote!(#[arg(range = 5..=1)] x: u8),
        quote!(#[arg(range = 1..1)] x: u8),
        quote!(#[arg(range = ..)] x: u8),
        quote!(#[arg(range = 5)] x: u8),
        quote!(#[arg(range = 1..5, default = 5)] x: u8),
        quote!(#[arg(one_of())] x: u8),
        quote!(#[arg(one_of = "a")] x: u8),
        quote!(#[arg(one_of("a"))] x: Vec<String>),
        quote!(#[arg(rename = 3)] x: u8),
        quote!(#[arg] x: u8),
        quote!(#[cfg(test)] x: u8),
        quote!(#[arg(rename = "y")] x: u8, y: u8),
        quote!(_: u8),
        quote!(Wrapper(x): Wrapper),
        quote!(context: &mut Context),
        quote!(#[arg(default = 1)] context: &Context),
        quote!(a: Context, b: &Context),
        quote!(a: Args<X>, b: u8),
        quote!(a: Args<X>, b: Args<X>),
        quote!(a: &Args<X>),
    ]
    .into_iter()
    .map(check)
    .collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    # [arg (default = 1)] x : Option < u8 >: "an argument with a default can be left out already; take the type without `Option`"
    # [arg (default)] x : u8: "expected `default = value`"
    # [arg (range = 1 ..= 5)] x : String: "a range is for numbers, and this is a `String`"
    # [arg (range = 5 ..= 1)] x : u8: "no number is in this range; the smaller end comes first"
    # [arg (range = 1 .. 1)] x : u8: "no number is in this range; the smaller end comes first"
    # [arg (range = ..)] x : u8: "the range has no end on either side; write it like `1..=50`"
    # [arg (range = 5)] x : u8: "expected `range = 1..=50`"
    # [arg (range = 1 .. 5 , default = 5)] x : u8: "the default is not in the range"
    # [arg (one_of ())] x : u8: "expected the values: `one_of(\"a\", \"b\")`"
    # [arg (one_of = "a")] x : u8: "expected `one_of(\"a\", \"b\")`"
    # [arg (one_of ("a"))] x : Vec < String >: "`one_of` is about the whole value; for the items of a list, make them an enum that derives `Deserialize` and `JsonSchema`"
    # [arg (rename = 3)] x : u8: "expected a text: `rename = \"…\"`"
    # [arg] x : u8: "expected attribute arguments in parentheses: #[arg(...)]"
    # [cfg (test)] x : u8: "a tool has the same parameters in every build; use `cfg` on the function"
    # [arg (rename = "y")] x : u8 , y : u8: "another argument has the name `y` already"
    _ : u8: "an argument needs a name, for the model to say it"
    Wrapper (x) : Wrapper: "an argument is known by its name; write a plain one here, and take the value apart inside of the function (only `Args(…): Args<…>` may be taken apart here)"
    context : & mut Context: "the context is shared; take it as `&Context`"
    # [arg (default = 1)] context : & Context: "this is not one argument of the model; `#[arg]` goes to those"
    a : Context , b : & Context: "the context is there already; once is enough"
    a : Args < X > , b : u8: "`Args<…>` holds all arguments; make this one a field of its type"
    a : Args < X > , b : Args < X >: "`Args<…>` is there already, and holds all arguments"
    a : & Args < X >: "take `Args<…>` by value"
    "#);
}
