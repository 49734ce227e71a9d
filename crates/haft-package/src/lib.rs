//! Packages of tools: bytes in, values out.
//!
//! A package is a set of [`files::PackageFiles`] with a manifest, `toolset.yaml`, that [`manifest`] reads to a
//! [`toolset::Toolset`]. It comes from a hostile ZIP ([`zip`]) or from a local folder ([`folder`]). Only [`folder`] does
//! I/O; there is no network, no database, no clock, and no async code.

pub mod files;
pub mod folder;
pub mod inspect;
pub mod manifest;
pub mod package;
pub mod path;
pub mod placeholders;
mod problems;
pub mod python_source;
pub mod requirements;
pub mod signature;
pub mod skeleton;
pub mod skill_folder;
pub mod toolset;
pub mod write;
pub mod zip;
