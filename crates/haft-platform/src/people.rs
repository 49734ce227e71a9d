//! People, service accounts and groups: who they are, what they may do, and who may change them.

mod directory;
mod groups;
mod manage;
mod rights;

pub use directory::GroupWithMembers;
pub(crate) use directory::{Directory, find_actor, load_group, people_of};
pub use directory::{Member, MemberFilter};
pub use groups::{GroupFields, GroupUpdate, create_group, delete_group, groups, update_group};
pub(crate) use manage::{MAX_MEMBERS, valid_email};
pub use manage::{
    MemberFields, MemberUpdate, find, hand_over, invite_again, list, new_member, remove, update,
};
pub use rights::RightsFields;
