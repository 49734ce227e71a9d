//! Python in the real sandbox.

mod functions;
mod hostile;
mod isolation;
mod limits;
mod rig;
mod scripts;
