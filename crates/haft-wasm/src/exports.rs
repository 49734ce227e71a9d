//! Which function of a component a definition means.

use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex};

use crate::shape::quoted;

/// The function that a tool is by convention.
const RUN: &str = "run";
/// The interface of a program that is run as a whole.
const COMMAND: &str = "wasi:cli/run";
/// The most functions that an error lists.
const LISTED: usize = 20;

/// An exported function.
pub(crate) struct Export {
    /// Its interface, such as `example:math/basic@1.0.0`.
    interface: Option<String>,
    name: String,
    pub(crate) ty: ComponentFunc,
    pub(crate) index: ComponentExportIndex,
}

/// What a definition chose.
pub(crate) enum Choice {
    /// A function by its name, or the only one there is.
    Function(Export),
    /// The function `run`, because no name is given.
    Run(Export),
    /// The whole program.
    Command(Export),
}

/// Why no function is chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChoiceError {
    #[error("the component exports no function `{asked}`; it exports {exported}")]
    Unknown { asked: String, exported: String },
    #[error("more than one exported function is named `{asked}`; give one of {exported}")]
    Ambiguous { asked: String, exported: String },
    #[error("the component exports no function `run`; name one of {exported}")]
    NoRun { exported: String },
    #[error("the component exports no function")]
    Empty,
}

impl Export {
    /// Returns the name that means this function and no other.
    pub(crate) fn path(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{interface}#{}", self.name),
            None => self.name.clone(),
        }
    }

    fn is_command(&self) -> bool {
        self.name == RUN && self.interface.as_deref().map(unversioned) == Some(COMMAND)
    }

    fn is_called(&self, asked: &str) -> bool {
        match (asked.split_once('#'), &self.interface) {
            (None, _) => self.name == asked,
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

/// Chooses: the named function; else `run`, a program, or the only function.
pub(crate) fn choose(
    engine: &Engine,
    component: &Component,
    asked: Option<&str>,
) -> Result<Choice, ChoiceError> {
    let mut all = list(engine, component);
    if all.is_empty() {
        return Err(ChoiceError::Empty);
    }
    let exported = listed(&all);
    if let Some(asked) = asked {
        return named(all, asked, exported).map(Choice::Function);
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

fn named(mut all: Vec<Export>, asked: &str, exported: String) -> Result<Export, ChoiceError> {
    let asked_text = haft_core::problem::excerpt(asked, 80);
    let exact = all.iter().position(|export| export.path() == asked);
    if let Some(found) = exact {
        return Ok(all.swap_remove(found));
    }
    all.retain(|export| export.is_called(asked));
    match (all.len(), all.pop()) {
        (1, Some(found)) => Ok(found),
        (0, _) | (_, None) => Err(ChoiceError::Unknown { asked: asked_text, exported }),
        (_, Some(last)) => {
            all.push(last);
            Err(ChoiceError::Ambiguous { asked: asked_text, exported: listed(&all) })
        }
    }
}

fn listed(all: &[Export]) -> String {
    let paths: Vec<_> = all.iter().take(LISTED).map(Export::path).collect();
    let more = all.len().saturating_sub(LISTED);
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
