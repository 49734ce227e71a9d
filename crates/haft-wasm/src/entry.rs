//! A linked program and its entry point.

use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use serde_json::Value;
use wasmtime::component::types::Type;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre as ComponentPre};
use wasmtime::{ExternType, InstancePre as ModulePre, Module};

use crate::compile::{Code, reason};
use crate::engine::Host;
use crate::exports::{self, Choice, Export};
use crate::shape::{Field, Shape, quoted, same_name};
use crate::state::State;

/// A linked program with its entry point.
pub(crate) enum Program {
    /// A function of a component.
    Function { linked: ComponentPre<State>, index: ComponentExportIndex, signature: Signature },
    /// A WASI command as a component: arguments on stdin, value on stdout.
    Command { linked: ComponentPre<State>, index: ComponentExportIndex },
    /// A WASI command as a core module.
    Module { linked: ModulePre<State> },
}

/// The calling convention of a function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Signature {
    /// `run(string) -> string`: the arguments as JSON text, the value as JSON or text.
    Text,
    /// The types of the function.
    Typed { name: String, params: Vec<Field>, result: Option<Shape> },
}

impl Program {
    /// Links code and selects the entry point.
    pub(crate) fn new(
        host: &Host,
        code: Code,
        spec: &ToolSpec,
        requested: Option<&str>,
    ) -> Result<Self, Vec<Problem>> {
        match code {
            Code::Component(component) => Self::of_component(host, &component, spec, requested),
            Code::Module(module) => {
                Self::of_module(host, &module, requested).map_err(|problem| vec![problem])
            }
        }
    }

    fn of_component(
        host: &Host,
        component: &Component,
        spec: &ToolSpec,
        requested: Option<&str>,
    ) -> Result<Self, Vec<Problem>> {
        let choice = exports::choose(&host.engine, component, requested).map_err(|error| {
            vec![Problem::new("implementation.function", "unknown_function", error.to_string())]
        })?;
        let linked =
            host.components.instantiate_pre(component).map_err(|error| vec![link_problem(&error)])?;
        let (export, by_convention) = match choice {
            Choice::Command(export) => return Ok(Self::Command { linked, index: export.index }),
            Choice::Run(export) => (export, true),
            Choice::Function(export) => (export, false),
        };
        let signature = signature(&export, by_convention)?;
        let problems = signature.check(spec);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self::Function { linked, index: export.index, signature })
    }

    fn of_module(host: &Host, module: &Module, requested: Option<&str>) -> Result<Self, Problem> {
        if let Some(requested) = requested.filter(|requested| *requested != "_start") {
            let message = format!(
                "cannot call `{}`: a core module runs as a WASI command (`_start`); build a component for typed \
                 functions, or remove `function`",
                haft_core::problem::excerpt(requested, 80)
            );
            return Err(Problem::new("implementation.function", "unknown_function", message));
        }
        match module.get_export("_start") {
            Some(ExternType::Func(ty)) if ty.params().len() == 0 && ty.results().len() == 0 => {}
            _ => {
                let names: Vec<_> = module.exports().take(20).map(|export| export.name()).collect();
                let message = format!(
                    "not a WASI command: the core module exports no function `_start` without arguments; it exports {}",
                    if names.is_empty() { "nothing".to_owned() } else { quoted(names) }
                );
                return Err(Problem::new("implementation.function", "unknown_function", message));
            }
        }
        let linked = host.modules.instantiate_pre(module).map_err(|error| link_problem(&error))?;
        Ok(Self::Module { linked })
    }
}

fn link_problem(error: &wasmtime::Error) -> Problem {
    let message = format!("unsupported import: {}", reason(error));
    Problem::new("implementation", "unknown_import", message)
}

fn signature(export: &Export, by_convention: bool) -> Result<Signature, Vec<Problem>> {
    let name = export.path();
    let mut problems = Vec::new();
    let mut shape = |what: &str, ty: &Type| {
        Shape::of(ty)
            .map_err(|error| {
                let message = format!("{what} of `{name}` {error}");
                problems.push(Problem::new("implementation.function", "unsupported_type", message));
            })
            .ok()
    };
    let params: Vec<_> = export
        .ty
        .params()
        .filter_map(|(param, ty)| {
            let shape = shape(&format!("the argument `{param}`"), &ty)?;
            Some(Field { name: param.to_owned(), shape })
        })
        .collect();
    let result = export.ty.results().next().and_then(|ty| shape("the result", &ty));
    if !problems.is_empty() {
        return Err(problems);
    }
    if by_convention && is_text(&params, result.as_ref()) {
        return Ok(Signature::Text);
    }
    Ok(Signature::Typed { name, params, result })
}

/// `run(string) -> string` or `-> result<string, string>`.
fn is_text(params: &[Field], result: Option<&Shape>) -> bool {
    let takes_text = matches!(params, [Field { shape: Shape::String, .. }]);
    let gives_text = match result {
        Some(Shape::String) => true,
        Some(Shape::Result(Some(ok), err)) => {
            **ok == Shape::String && err.as_deref().is_none_or(|err| *err == Shape::String)
        }
        _ => false,
    };
    takes_text && gives_text
}

impl Signature {
    /// Compares with the input schema, if it declares arguments.
    fn check(&self, spec: &ToolSpec) -> Vec<Problem> {
        let input = spec.input_schema.value();
        let (Self::Typed { name, params, .. }, Some(declared)) =
            (self, input.get("properties").and_then(Value::as_object))
        else {
            return Vec::new();
        };
        let taken = if params.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("it takes {}", quoted(params.iter().map(|param| param.name.as_str())))
        };
        let unknown = declared.keys().filter(|key| !params.iter().any(|param| same_name(&param.name, key)));
        let unknown = unknown.map(|key| {
            let message = format!("function `{name}` has no such argument; {taken}");
            Problem::new(format!("input_schema.properties.{key}"), "unknown_argument", message)
        });
        let missing = params.iter().filter(|param| {
            !param.shape.optional() && !declared.keys().any(|key| same_name(&param.name, key))
        });
        let missing = missing.map(|param| {
            let message = format!("function `{name}` requires `{}: {}`; declare it", param.name, param.shape);
            Problem::new("input_schema.properties", "missing_argument", message)
        });
        unknown.chain(missing).collect()
    }
}
