//! Python in the real sandbox.

mod environments;
mod functions;
mod hostile;
mod isolation;
mod limits;
mod packages;
mod rig;
mod scripts;
