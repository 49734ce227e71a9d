//! Filters of RFC 7644 and of identity providers, and those of attackers.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn ann() -> Map<String, Value> {
    let ann = json!({
        "id": "Abc", "userName": "Ann@Example.com", "externalId": "X7", "active": true, "count": 5,
        "name": {"familyName": "O'Malley", "givenName": "Ann"},
        "emails": [
            {"value": "ann@example.com", "type": "work", "primary": true},
            {"value": "ann@home.example", "type": "home"},
        ],
        "members": [{"value": "Abc"}],
        "meta": {"lastModified": "2026-05-13T04:42:34Z"},
    });
    ann.as_object().unwrap().clone()
}

#[test]
fn filters_select_resources() {
    let check = |filter: &str, expected: bool| {
        assert_eq!(Filter::parse(filter).unwrap().matches(&ann()), expected, "{filter}");
    };
    for (filter, expected) in [
        (r#"userName eq "ann@example.com""#, true),
        (r#"USERNAME Eq "ann@example.com""#, true),
        (r#"urn:ietf:params:scim:schemas:core:2.0:User:userName sw "ann""#, true),
        (r#"urn:example:User:userName sw "ann""#, false),
        (r#"userName ne "bob""#, true),
        (r#"title ne "bob""#, true),
        (r#"title eq "bob""#, false),
        ("title pr", false),
        ("title eq null", true),
        ("userName eq null", false),
        ("userName ne null", true),
        ("userName pr", true),
        (r#"name.familyName co "o'malley""#, true),
        (r#"name.familyName ew "LEY" and active eq true"#, true),
        (r#"active eq "False""#, false),
        ("active ne false", true),
        ("active eq True", true),
        // Ids are compared exactly.
        (r#"id eq "abc""#, false),
        (r#"externalId eq "x7""#, false),
        (r#"externalId eq "X7""#, true),
        (r#"members eq "abc""#, false),
        (r#"members[value eq "Abc"]"#, true),
        (r#"members[value eq "abc"]"#, false),
        (r#"members.value eq "Abc""#, true),
        (r#"emails co "home""#, true),
        (r#"emails.type eq "home""#, true),
        (r#"emails[type eq "work" and value co "@example.com"]"#, true),
        (r#"emails[type eq "home" and value co "@example.com"]"#, false),
        ("emails[not (primary eq true)]", true),
        (r#"emails ne "ann@example.com""#, false),
        (r#"meta.lastModified gt "2026-05-13T04:42:34.000Z""#, false),
        (r#"meta.lastModified ge "2026-05-13T06:42:34+02:00""#, true),
        (r#"meta.lastModified lt "2027-01-01T00:00:00Z""#, true),
        ("count gt 4.5", true),
        ("count le 4", false),
        (r#"count eq "5""#, false),
        ("userName eq 5", false),
        // `and` binds more tightly than `or`.
        ("userName pr or title pr and title pr", true),
        ("(userName pr or title pr) and title pr", false),
        ("not(title pr)and(userName pr)", true),
        ("not (userName pr)", false),
        (r#"userName eq "a\"b\\" or active eq true"#, true),
        ("  userName   pr  ", true),
    ] {
        check(filter, expected);
    }
}

#[test]
fn what_is_no_filter_is_rejected() {
    let check = |filter: &str, expected: &str| {
        let error = Filter::parse(filter).unwrap_err();
        assert_eq!(error.kind, ScimType::InvalidFilter, "{filter}");
        assert!(error.detail.contains(expected), "{filter}: {}", error.detail);
        assert!(error.detail.len() < 1000, "{}", error.detail);
    };
    check("", "the name of an attribute at byte 0");
    check("userName", "expected `eq`");
    check("userName is \"a\"", "expected `eq`");
    check("userName eq", "expected a text");
    check("userName eq ann", "expected a text");
    check("userName eq \"ann", "a text that does not end");
    check("userName eq [1]", "expected a text");
    check("userName eq {}", "expected a text");
    check("userName pr and", "the name of an attribute");
    check("userName pr or or", "expected `eq`");
    check("userName pr userName pr", "expected `and`, `or` or the end");
    check("(userName pr", "expected `)`");
    check("userName pr)", "the end at byte 11");
    check("emails[type pr", "expected `]`");
    check("not userName pr", "expected `(`");
    check("userName.a.b pr", "the name of an attribute");
    check("active gt true", "is compared with `eq true`");
    check("active eq 5", "is compared with `eq true`");
    check("emails.primary co \"t\"", "is compared with `eq true`");
    check("🦀 eq 1", "the name of an attribute");
    check(&"(".repeat(4000), "nested more than 16 levels");
    check(&"not(".repeat(1000), "nested more than 16 levels");
    check(&"a[".repeat(2000), "nested more than 16 levels");
    check(&"(".repeat(10_000), "the limit is 4096");
    check(&format!("userName eq \"{}\"", "x".repeat(100_000)), "the limit is 4096");
    check(&vec!["a pr"; 65].join(" or "), "more than 64 comparisons");
}

#[test]
fn the_text_to_look_up_is_found() {
    let check = |filter: &str, expected: Option<&str>| {
        assert_eq!(Filter::parse(filter).unwrap().required_text("userName"), expected, "{filter}");
    };
    check(r#"userName eq "ann""#, Some("ann"));
    check(r#"active eq true and username EQ "ann""#, Some("ann"));
    for filter in [
        r#"userName eq "ann" or active eq true"#,
        r#"not (userName eq "ann")"#,
        r#"userName co "ann""#,
        r#"urn:x:y:userName eq "ann""#,
        "userName eq 5",
    ] {
        check(filter, None);
    }
}

/// Texts of the parts of filters, in any order.
fn parts() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "userName", "emails", "[", "]", "(", ")", "not", "and", "or", "eq", "co", "pr", "\"a\"", "\"", "\\",
        "5", "true", "null", ".", ":", "urn:", " ", "é", "active",
    ]);
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.join(" "))
}

/// Filters and whether Ann matches.
fn valid() -> impl Strategy<Value = (String, bool)> {
    let leaf = prop::sample::select(vec![
        (r#"userName eq "ann@example.com""#, true),
        ("title pr", false),
        (r#"emails[type eq "work"]"#, true),
        ("active eq false", false),
    ]);
    let leaf = leaf.prop_map(|(text, is_match)| (text.to_owned(), is_match));
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|(text, is_match)| (format!("not ({text})"), !is_match)),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| (format!("({}) and ({})", a.0, b.0), a.1 && b.1)),
            (inner.clone(), inner).prop_map(|(a, b)| (format!("({}) or ({})", a.0, b.0), a.1 || b.1)),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in prop_oneof![parts(), any::<String>()]) {
        if let Ok(filter) = Filter::parse(&text) {
            filter.matches(&ann());
        }
    }

    #[test]
    fn a_filter_means_what_its_parts_mean((text, expected) in valid()) {
        prop_assert_eq!(Filter::parse(&text).unwrap().matches(&ann()), expected);
    }
}
