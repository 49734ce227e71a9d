//! The catalogue of texts: which there are, and how values are put into them.

use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_platform::accounts::LoginError;
use haft_platform::sign_on::SignOnError;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// The texts of one language. `{name}` stands for a value; see [`fill`].
        pub(crate) struct Texts {
            $($(#[$doc])* pub(crate) $name: &'static str,)+
            /// What an error code means; `None` if the message of the error says it in this language.
            pub(crate) of_code: fn(ErrorCode) -> Option<&'static str>,
            /// Why a login at an issuer failed; `None` if only the error of a service says it.
            pub(crate) of_sign_on: fn(&SignOnError) -> Option<String>,
            /// Why an account was not connected; `None` if only the error itself says it.
            pub(crate) of_account_login: fn(&LoginError) -> Option<&'static str>,
            /// The name of a role.
            pub(crate) of_role: fn(Role) -> &'static str,
            /// What an application with a role may do.
            pub(crate) of_choice: fn(Role) -> &'static str,
        }

        #[cfg(test)]
        impl Texts {
            pub(super) fn all(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($name), self.$name),)+]
            }
        }
    };
}

texts! {
    /// The code of the language, for the attribute `lang`.
    lang,
    go_on,
    back_to_login,
    close_page,
    address_invalid,
    internal_error,

    log_in_title,
    log_in,
    token,
    link_hint,
    token_hint,
    invalid_token,
    invalid_link,
    enter_token,
    sign_on,
    log_in_with,
    or,

    device_title,
    device_lead,
    device_code,
    device_unknown_code,
    computer,
    says_it_is,
    says_it_is_at,
    tenant,
    you,
    role,
    tools,
    every_tool,
    no_tool,
    expires,
    expires_after,
    device_hint,
    approve,
    deny,
    device_approved,
    device_denied,
    device_says,

    consent_title,
    consent_lead,
    application,
    not_verified,
    described_by,
    described_by_itself,
    described_by_admin,
    answer_goes_to,
    local_program,
    local_program_of_scheme,
    connected_before,
    it_may,
    asked_for_more,
    all_tools,
    only_these,
    choose_from_one_bundle,
    choose_from_bundles,
    names,
    and_more,
    patterns,
    stays_connected,
    until_disconnected,
    one_year,
    ninety_days,
    thirty_days,
    one_day,
    consent_hint,
    allow,
    allowed,
    denied,
    request_invalid,
    the_application,
    sent_back,
    if_nothing_happens,
    nothing_sent,
    unknown_application,
    logged_out,
    form_expired,
    needs_browser,
    choose_role,
    more_than_requested,
    choose_tools,
    choose_some_tools,
    too_many_rules,
    choose_lifetime,

    account_failed,
    accounts,
}

/// Puts values into a text. They are not read again, whatever they contain.
pub(crate) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let found = after.split_once('}').and_then(|(name, tail)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((*value, tail))
        });
        if let Some((value, tail)) = found {
            filled.push_str(value);
            rest = tail;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}
