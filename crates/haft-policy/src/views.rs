//! The surfaces on which a rule sees a call.
//!
//! A rule that denies or asks for approval sees the surface of the call and those above it. A rule that allows sees the
//! surface of the direct caller only, or a nested call could do what its own surface may not.
//!
//! The surface `cli` is what a client of the REST API says about itself. It may restrict a call and never allow it: a
//! rule that allows sees `rest` in its place, any other rule sees both.

use std::borrow::Cow;
use std::sync::Arc;

use haft_core::policy::Effect;

use super::attributes::CallAttributes;
use super::evaluator::{Evaluator, Patterns};

/// The surface that clients of the REST API claim by a header.
const CLAIMED: &str = "cli";
/// The surface of the REST API.
const REST: &str = "rest";

/// A call as it is seen on one surface.
pub(super) struct View<'a> {
    pub(super) attributes: CallAttributes<'a>,
    pub(super) evaluator: Evaluator<'a>,
}

/// A call as it is seen on its own surface and on those above it.
pub(super) struct Views<'a> {
    direct: View<'a>,
    /// The direct caller without what the client claims, if that is another surface.
    verified: Option<View<'a>>,
    above: Vec<View<'a>>,
}

impl<'a> Views<'a> {
    /// Creates the views of a call.
    pub(super) fn new(
        attributes: CallAttributes<'a>,
        surfaces_above: &'a [Cow<'static, str>],
        patterns: &'a Arc<Patterns>,
    ) -> Self {
        let view = |surface: &'a str| {
            let attributes = CallAttributes { surface, ..attributes };
            View { evaluator: Evaluator::new(&attributes, patterns), attributes }
        };
        let mut above: Vec<View<'a>> = Vec::new();
        for surface in std::iter::once(attributes.surface).chain(surfaces_above.iter().map(|above| &**above))
        {
            let implied = (surface == CLAIMED).then_some(REST);
            for surface in std::iter::once(surface).chain(implied) {
                let is_seen = |view: &View<'_>| view.attributes.surface == surface;
                if surface != attributes.surface && !above.iter().any(is_seen) {
                    above.push(view(surface));
                }
            }
        }
        Self {
            direct: view(attributes.surface),
            verified: (attributes.surface == CLAIMED).then(|| view(REST)),
            above,
        }
    }

    /// Returns what is called, as its own surface sees it.
    pub(super) fn attributes(&self) -> &CallAttributes<'a> {
        &self.direct.attributes
    }

    /// Returns the views of the call for rules of an effect, that of the direct caller first.
    pub(super) fn of(&self, effect: Effect) -> impl Iterator<Item = &View<'a>> {
        let (direct, above) = match effect {
            Effect::Allow => (self.verified.as_ref().unwrap_or(&self.direct), &[][..]),
            Effect::Approve | Effect::Deny => (&self.direct, self.above.as_slice()),
        };
        std::iter::once(direct).chain(above)
    }
}
