//! Scopes: which role an application asks for.

use haft_core::token::Role;

/// The scope with which a client asks for refresh tokens.
pub const OFFLINE_ACCESS: &str = "offline_access";
/// Every scope.
pub const ALL: [&str; 5] = ["haft:read", "haft:call", "haft:edit", "haft:admin", OFFLINE_ACCESS];
/// The role of a client that names no scope.
pub const DEFAULT: Role = Role::Caller;

/// Returns the scope that a role needs.
pub const fn of_role(role: Role) -> &'static str {
    match role {
        Role::Viewer => "haft:read",
        Role::Caller => "haft:call",
        Role::Editor => "haft:edit",
        Role::Admin => "haft:admin",
    }
}

/// Returns the role that a list of scopes asks for: the highest one. Scopes of others, such as `openid`, are ignored.
pub fn requested_role(scopes: Option<&str>) -> Option<Role> {
    let names = scopes.unwrap_or_default().split_ascii_whitespace();
    names.filter_map(|name| Role::ALL.into_iter().find(|role| of_role(*role) == name)).max()
}

/// Returns the scopes that a role has. A role includes those below it.
pub fn granted(role: Role, has_refresh_token: bool) -> String {
    let roles = Role::ALL.into_iter().filter(|included| *included <= role).map(of_role);
    let names: Vec<_> = roles.chain(has_refresh_token.then_some(OFFLINE_ACCESS)).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_scope_is_the_role() {
        for (scopes, expected) in [
            (None, None),
            (Some(""), None),
            (Some("openid offline_access HAFT:ADMIN haft:"), None),
            (Some("haft:read"), Some(Role::Viewer)),
            (Some("offline_access haft:call  haft:read"), Some(Role::Caller)),
            (Some("haft:admin haft:edit"), Some(Role::Admin)),
        ] {
            assert_eq!(requested_role(scopes), expected, "{scopes:?}");
        }
    }

    #[test]
    fn a_role_has_the_scopes_below_it() {
        assert_eq!(granted(Role::Viewer, false), "haft:read");
        assert_eq!(granted(Role::Editor, true), "haft:read haft:call haft:edit offline_access");
        for role in Role::ALL {
            assert_eq!(requested_role(Some(&granted(role, true))), Some(role));
        }
    }
}
