//! Logins at issuers: single-use states, identities, and what rules assign.

use haft_core::actor::{ActorStatus, Rights};
use haft_core::id::{ActorId, GroupId};
use haft_core::login::SignOnLoginRecord;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::token::Role;
use haft_core::{Clock as _, Timestamp};
use haft_store::{
    ActorChange, DeviceLoginLimits, SignOnAssignment, SignOnLogin, SignOnLoginStart, SignOnPerson,
    SignOnResult,
};

use crate::harness::{Harness, call_id, on_both};
use crate::people::{group, membership, person};

on_both![
    a_login_is_used_once_and_by_its_browser,
    an_address_finds_one_person_at_most,
    what_rules_assign_is_replaced_and_the_rest_stays,
];

pub(crate) const ISSUER: &str = "https://login.test";
const LIMITS: DeviceLoginLimits = DeviceLoginLimits { per_address: 3, total: 5 };

/// A login that waits for two hours of the harness's clock.
pub(crate) fn sign_on_login(harness: &Harness, hash: &str) -> SignOnLoginRecord {
    let now = harness.clock.now();
    SignOnLoginRecord {
        hash: hash.to_owned(),
        issuer: "corp".to_owned(),
        browser_hash: "browser".to_owned(),
        next: Some("/ui/calls".to_owned()),
        tenant: Some(TenantId::default_tenant()),
        address: "192.0.2.1".to_owned(),
        created_at: now,
        expires_at: Timestamp::from_microsecond(now.as_microsecond() + 2 * 3_600_000_000).unwrap(),
    }
}

/// A login of a subject that has succeeded.
pub(crate) fn logged_in(harness: &Harness, subject: &str, assignments: Vec<SignOnAssignment>) -> SignOnLogin {
    let email = Some(format!("{subject}@example.com"));
    SignOnLogin {
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
        link_email: email.clone(),
        new: SignOnPerson { id: ActorId(call_id(&harness.clock).0), name: subject.to_owned(), email },
        assignments,
    }
}

pub(crate) fn assignment(tenant: &TenantId, groups: Vec<GroupId>) -> SignOnAssignment {
    let rights = Rights { role: Role::Editor, elevated: false, platform: false, tools: AllowList::default() };
    SignOnAssignment { tenant: tenant.clone(), rights, groups }
}

async fn a_login_is_used_once_and_by_its_browser(harness: Harness) {
    let access = harness.store.access();
    for (hash, expected) in [
        ("a", SignOnLoginStart::Stored),
        ("b", SignOnLoginStart::Stored),
        ("c", SignOnLoginStart::Stored),
        ("d", SignOnLoginStart::TooManyOfAddress),
    ] {
        assert_eq!(
            access.insert_sign_on_login(sign_on_login(&harness, hash), LIMITS).await.unwrap(),
            expected
        );
    }
    for (hash, expected) in
        [("d", SignOnLoginStart::Stored), ("e", SignOnLoginStart::Stored), ("f", SignOnLoginStart::TooMany)]
    {
        let login = SignOnLoginRecord { address: hash.to_owned(), ..sign_on_login(&harness, hash) };
        assert_eq!(access.insert_sign_on_login(login, LIMITS).await.unwrap(), expected, "{hash}");
    }
    assert_eq!(access.take_sign_on_login("a", "other browser").await.unwrap(), None);
    let taken = access.take_sign_on_login("a", "browser").await.unwrap().unwrap();
    assert_eq!((taken.hash.as_str(), taken.next.as_deref()), ("a", Some("/ui/calls")));
    assert_eq!(access.take_sign_on_login("a", "browser").await.unwrap(), None);
    harness.clock.advance(3);
    assert_eq!(access.take_sign_on_login("b", "browser").await.unwrap(), None, "expired");
}

async fn an_address_finds_one_person_at_most(harness: Harness) {
    let access = harness.store.access();
    let tenant = TenantId::default_tenant();
    let nothing = logged_in(&harness, "nobody", Vec::new());
    assert_eq!(access.sign_on(nothing).await.unwrap(), SignOnResult::NothingAssigned);
    let ann = person(&harness, "ann");
    access.insert_actor(ann.clone(), membership(ann.id, &tenant), Vec::new()).await.unwrap();
    let linked = access.sign_on(logged_in(&harness, "ann", Vec::new())).await.unwrap();
    assert_eq!(linked, SignOnResult::Person { id: ann.id, is_new_identity: true });
    let again = SignOnLogin { link_email: None, ..logged_in(&harness, "ann", Vec::new()) };
    let again = access.sign_on(again).await.unwrap();
    assert_eq!(again, SignOnResult::Person { id: ann.id, is_new_identity: false });
    // Another subject with her address is a new person without it.
    let assignments = vec![assignment(&tenant, Vec::new())];
    let other = logged_in(&harness, "ann", assignments.clone());
    let other = SignOnLogin { subject: "other".to_owned(), ..other };
    let SignOnResult::Person { id, .. } = access.sign_on(other).await.unwrap() else { panic!("a person") };
    let actors = access.actors().await.unwrap();
    let created = actors.iter().find(|actor| actor.id == id).unwrap();
    assert_eq!((created.status, &created.email), (ActorStatus::Active, &None));
    // At another issuer, her address finds her.
    let elsewhere = logged_in(&harness, "ann", Vec::new());
    let elsewhere = SignOnLogin { issuer: "https://other.test".to_owned(), ..elsewhere };
    assert!(
        matches!(access.sign_on(elsewhere).await.unwrap(), SignOnResult::Person { id, .. } if id == ann.id)
    );
    let disabled = ActorChange { status: Some(ActorStatus::Disabled), ..ActorChange::default() };
    access.update_actor(ann.id, disabled).await.unwrap();
    let known = logged_in(&harness, "ann", assignments.clone());
    assert_eq!(access.sign_on(known.clone()).await.unwrap(), SignOnResult::Disabled);
    let third = SignOnLogin { issuer: "https://third.test".to_owned(), ..known };
    assert!(matches!(access.sign_on(third).await.unwrap(), SignOnResult::Person { id, .. } if id != ann.id));
}

async fn what_rules_assign_is_replaced_and_the_rest_stays(harness: Harness) {
    let access = harness.store.access();
    let (tenant, acme) = (TenantId::default_tenant(), TenantId::new("acme").unwrap());
    harness.store.tenants().create(acme.clone(), "Acme".to_owned()).await.unwrap();
    let ann = person(&harness, "ann");
    access.insert_actor(ann.clone(), membership(ann.id, &tenant), Vec::new()).await.unwrap();
    let [by_hand, assigned] = ["by hand", "assigned"].map(|name| group(&harness, name, Vec::new()));
    access.insert_group(assigned.clone()).await.unwrap();
    let by_hand = haft_core::actor::GroupRecord { members: vec![ann.id], ..by_hand };
    access.insert_group(by_hand.clone()).await.unwrap();
    let assignments = vec![assignment(&tenant, vec![assigned.id]), assignment(&acme, Vec::new())];
    access.sign_on(logged_in(&harness, "ann", assignments)).await.unwrap();
    let members = async || {
        let groups = access.groups().await.unwrap();
        [by_hand.id, assigned.id].map(|id| groups.iter().find(|group| group.id == id).unwrap().members.len())
    };
    let tenants = async || {
        let memberships = access.memberships().await.unwrap();
        let mut own: Vec<_> = memberships.iter().map(|one| one.tenant.to_string()).collect();
        own.sort();
        own
    };
    assert_eq!((members().await, tenants().await), ([1, 1], vec!["acme".to_owned(), "default".to_owned()]));
    assert_eq!(access.assigned_rights().await.unwrap().len(), 2);
    // The list that was shown comes back: nothing becomes by hand that was assigned.
    let groups = Some((tenant.clone(), vec![by_hand.id, assigned.id]));
    access.update_actor(ann.id, ActorChange { groups, ..ActorChange::default() }).await.unwrap();
    access.sign_on(logged_in(&harness, "ann", Vec::new())).await.unwrap();
    assert_eq!((members().await, tenants().await), ([1, 0], vec!["default".to_owned()]));
    assert!(access.assigned_rights().await.unwrap().is_empty());
    // Somebody from whom everything is taken remains known.
    let bob = logged_in(&harness, "bob", vec![assignment(&acme, Vec::new())]);
    let SignOnResult::Person { id, .. } = access.sign_on(bob).await.unwrap() else { panic!("a person") };
    let nothing = access.sign_on(logged_in(&harness, "bob", Vec::new())).await.unwrap();
    assert_eq!(nothing, SignOnResult::NothingAssigned);
    assert_eq!(access.find_identity(ISSUER, "bob").await.unwrap(), Some(id));
    assert_eq!(tenants().await, ["default"]);
}
