//! Selects the exported function of a component.

use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex};

use crate::shape::quoted;

/// The default function.
const RUN: &str = "run";
/// The interface of WASI commands.
const COMMAND: &str = "wasi:cli/run";
/// How many functions an error message lists.
const MAX_LISTED: usize = 20;

/// An exported function.
pub(crate) struct Export {
    /// Its interface, such as `example:math/basic@1.0.0`.
    interface: Option<String>,
    name: String,
    pub(crate) ty: ComponentFunc,
    pub(crate) index: ComponentExportIndex,
}

/// The selected entry point.
pub(crate) enum Choice {
    /// A function by its name, or the only one.
    Function(Export),
    /// The default function `run`.
    Run(Export),
    /// A WASI command.
    Command(Export),
}

/// Why no function was selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChoiceError {
    #[error("function `{requested}` not found; the component exports {exported}")]
    Unknown { requested: String, exported: String },
    #[error("ambiguous function `{requested}`; use one of {exported}")]
    Ambiguous { requested: String, exported: String },
    #[error("the component has no function `run`; set `function` to one of {exported}")]
    NoRun { exported: String },
    #[error("the component exports no function")]
    Empty,
}

impl Export {
    /// Returns the qualified name.
    pub(crate) fn path(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{interface}#{}", self.name),
            None => self.name.clone(),
        }
    }

    fn is_command(&self) -> bool {
        self.name == RUN && self.interface.as_deref().map(unversioned) == Some(COMMAND)
    }

    fn is_called(&self, requested: &str) -> bool {
        match (requested.split_once('#'), &self.interface) {
            (None, _) => self.name == requested,
            (Some((interface, name)), Some(own)) => {
                self.name == name && (own == interface || unversioned(own) == interface)
            }
            (Some(_), None) => false,
        }
    }
}

fn unversioned(interface: &str) -> &str {
    interface.split_once('@').map_or(interface, |(name, _)| name)
}

/// Selects the named function, or `run`, a WASI command, or the only function.
pub(crate) fn choose(
    engine: &Engine,
    component: &Component,
    requested: Option<&str>,
) -> Result<Choice, ChoiceError> {
    let mut all = list(engine, component);
    if all.is_empty() {
        return Err(ChoiceError::Empty);
    }
    let exported = list_text(&all);
    if let Some(requested) = requested {
        return named(all, requested, exported).map(Choice::Function);
    }
    let run = |export: &Export| export.name == RUN && !export.is_command();
    let of_component = all.iter().position(|export| run(export) && export.interface.is_none());
    let command = all.iter().position(Export::is_command);
    let of_interface = all.iter().position(run);
    if let Some(found) = of_component {
        return Ok(Choice::Run(all.swap_remove(found)));
    }
    if let Some(found) = command {
        return Ok(Choice::Command(all.swap_remove(found)));
    }
    if all.iter().filter(|export| run(export)).count() == 1
        && let Some(found) = of_interface
    {
        return Ok(Choice::Run(all.swap_remove(found)));
    }
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => Ok(Choice::Function(only)),
        _ => Err(ChoiceError::NoRun { exported }),
    }
}

fn named(mut all: Vec<Export>, requested: &str, exported: String) -> Result<Export, ChoiceError> {
    let requested_text = haft_core::problem::excerpt(requested, 80);
    let exact = all.iter().position(|export| export.path() == requested);
    if let Some(found) = exact {
        return Ok(all.swap_remove(found));
    }
    all.retain(|export| export.is_called(requested));
    match (all.len(), all.pop()) {
        (1, Some(found)) => Ok(found),
        (0, _) | (_, None) => Err(ChoiceError::Unknown { requested: requested_text, exported }),
        (_, Some(last)) => {
            all.push(last);
            Err(ChoiceError::Ambiguous { requested: requested_text, exported: list_text(&all) })
        }
    }
}

fn list_text(all: &[Export]) -> String {
    let paths: Vec<_> = all.iter().take(MAX_LISTED).map(Export::path).collect();
    let more = all.len().saturating_sub(MAX_LISTED);
    let text = quoted(paths.iter().map(String::as_str));
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// Lists the functions of a component, and of the interfaces that it exports.
fn list(engine: &Engine, component: &Component) -> Vec<Export> {
    let mut found = Vec::new();
    for (name, item) in component.component_type().exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(ty) => {
                if let Some(index) = component.get_export_index(None, name) {
                    found.push(Export { interface: None, name: name.to_owned(), ty, index });
                }
            }
            ComponentItem::ComponentInstance(instance) => {
                let Some(outer) = component.get_export_index(None, name) else { continue };
                for (inner, item) in instance.exports(engine) {
                    let ComponentItem::ComponentFunc(ty) = item.ty else { continue };
                    if let Some(index) = component.get_export_index(Some(&outer), inner) {
                        let interface = Some(name.to_owned());
                        found.push(Export { interface, name: inner.to_owned(), ty, index });
                    }
                }
            }
            _ => {}
        }
    }
    found
}
