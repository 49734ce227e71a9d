//! People, service accounts and groups.

use haft_core::Clock as _;
use haft_core::actor::{
    ActorKind, ActorRecord, ActorStatus, GroupRecord, LOCAL_OWNER, Membership, Provisioned, Rights, login_key,
};
use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, GroupId, TokenId};
use haft_core::limit::CallRate;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::token::{Role, TokenRecord};
use haft_store::{
    AccessChanges, ActorChange, GroupChange, HandedOver, MemberKey, MemberRecords, MembersChange, NewChat,
    OwnedByToken,
};

use crate::harness::{Harness, call_id, on_both};
use crate::logins::{link, session};
use crate::tokens::token_of;

on_both![
    people_and_groups_are_stored_and_changed,
    a_removed_member_leaves_nothing_behind,
    an_email_address_belongs_to_one_person,
    what_a_person_owns_is_handed_over,
    a_deleted_tenant_leaves_no_member,
    provisioned_members_are_looked_up_and_suspended,
    members_of_groups_are_added_and_removed,
    a_node_learns_whose_access_changed,
    a_token_gets_an_owner_with_what_it_owns,
    the_local_owner_is_added_once,
];

pub(crate) fn person(harness: &Harness, name: &str) -> ActorRecord {
    let now = harness.clock.now();
    ActorRecord {
        id: ActorId(call_id(&harness.clock).0),
        kind: ActorKind::Person,
        name: name.to_owned(),
        email: Some(format!("{}@Example.com", name.replace(' ', "-"))),
        description: String::new(),
        responsible: None,
        status: ActorStatus::Invited,
        created_at: now,
        modified_at: now,
        last_seen_at: None,
    }
}

fn rights(role: Role, tools: &[&str]) -> Rights {
    Rights { role, elevated: false, platform: false, tools: AllowList::new(tools).unwrap() }
}

pub(crate) fn membership(actor: ActorId, tenant: &TenantId) -> Membership {
    Membership {
        rate_limit: None,
        actor,
        tenant: tenant.clone(),
        rights: rights(Role::Caller, &["web:*"]),
        is_suspended: false,
        provisioned: None,
    }
}

pub(crate) fn group(harness: &Harness, name: &str, members: Vec<ActorId>) -> GroupRecord {
    let now = harness.clock.now();
    GroupRecord {
        id: GroupId(call_id(&harness.clock).0),
        tenant: TenantId::default_tenant(),
        name: name.to_owned(),
        description: "Pays".to_owned(),
        rights: rights(Role::Editor, &["bank:pay"]),
        created_at: now,
        modified_at: now,
        members,
        is_provisioned: false,
        external_id: None,
    }
}

async fn insert(harness: &Harness, name: &str) -> ActorRecord {
    let person = person(harness, name);
    let membership = membership(person.id, &TenantId::default_tenant());
    harness.store.access().insert_actor(person.clone(), membership, Vec::new()).await.unwrap();
    person
}

async fn people_and_groups_are_stored_and_changed(harness: Harness) {
    let access = harness.store.access();
    let tenant = TenantId::default_tenant();
    let [ann, bob] = [insert(&harness, "ann").await, insert(&harness, "bob").await];
    assert_eq!(access.actors().await.unwrap(), [ann.clone(), bob.clone()]);
    let group = group(&harness, "finance", vec![ann.id]);
    access.insert_group(group.clone()).await.unwrap();
    assert_eq!(access.groups().await.unwrap(), std::slice::from_ref(&group));

    let change = ActorChange {
        name: Some("Ann Smith".to_owned()),
        email: Some(None),
        status: Some(ActorStatus::Active),
        rights: Some((tenant.clone(), rights(Role::Admin, &["a"]))),
        groups: Some((tenant.clone(), Vec::new())),
        ..ActorChange::default()
    };
    access.update_actor(ann.id, change).await.unwrap();
    let changed = &access.actors().await.unwrap()[0];
    assert_eq!((changed.name.as_str(), &changed.email), ("Ann Smith", &None));
    assert_eq!((changed.status, changed.created_at), (ActorStatus::Active, ann.created_at));
    let memberships = access.memberships().await.unwrap();
    let own = memberships.iter().find(|membership| membership.actor == ann.id).unwrap();
    assert_eq!(own.rights, rights(Role::Admin, &["a"]));
    assert!(access.groups().await.unwrap()[0].members.is_empty());

    let change = GroupChange {
        name: Some("payments".to_owned()),
        members: Some(MembersChange::Replace(vec![bob.id])),
        rights: Some(Rights { tools: AllowList::default(), ..group.rights.clone() }),
        ..GroupChange::default()
    };
    access.update_group(group.id, change).await.unwrap();
    let changed = access.groups().await.unwrap().remove(0);
    assert_eq!((changed.name.as_str(), &changed.members), ("payments", &vec![bob.id]));
    assert!(changed.rights.tools.is_unlimited() && changed.description == "Pays");
    let other = GroupRecord { id: GroupId(call_id(&harness.clock).0), ..changed.clone() };
    assert!(matches!(access.insert_group(other).await, Err(StoreError::Conflict(_))));
    access.delete_group(changed.id).await.unwrap();
    assert!(matches!(access.delete_group(changed.id).await, Err(StoreError::NotFound { .. })));

    let seen = harness.clock.now();
    access.record_actor_use(vec![(bob.id, seen)]).await.unwrap();
    assert_eq!(access.actors().await.unwrap()[1].last_seen_at, Some(seen));
    access.activate_person(bob.id).await.unwrap();
    assert_eq!(access.actors().await.unwrap()[1].status, ActorStatus::Active);
    harness.store.close().await;
}

async fn a_removed_member_leaves_nothing_behind(harness: Harness) {
    let access = harness.store.access();
    let tenant = TenantId::default_tenant();
    let ann = insert(&harness, "ann").await;
    let of_person = TokenRecord { actor: Some(ann.id), ..token_of(&tenant) };
    access.insert_token(&of_person).await.unwrap();
    assert_eq!(access.tokens().await.unwrap(), std::slice::from_ref(&of_person));
    let key = login_key(ann.id, &tenant);
    access.insert_session(session(&harness, "by link", &key), None).await.unwrap();
    access.insert_session(session(&harness, "by token", &of_person.hash), None).await.unwrap();
    access.insert_session(session(&harness, "of another", "other"), None).await.unwrap();
    access.replace_login_links(link(&harness, "first", &key)).await.unwrap();
    access.replace_login_links(link(&harness, "second", &key)).await.unwrap();
    assert_eq!(access.take_login_link("first").await.unwrap(), None);
    assert_eq!(access.take_login_link("second").await.unwrap(), Some(key.clone()));

    let disabled = ActorChange { status: Some(ActorStatus::Disabled), ..ActorChange::default() };
    access.update_actor(ann.id, disabled).await.unwrap();
    assert_eq!(access.sessions().await.unwrap().len(), 2);
    access.delete_membership(ann.id, tenant.clone()).await.unwrap();
    let sessions: Vec<String> =
        access.sessions().await.unwrap().into_iter().map(|session| session.hash).collect();
    assert_eq!(sessions, ["of another"]);
    assert!(access.actors().await.unwrap().is_empty() && access.tokens().await.unwrap().is_empty());
    // A token that another node is about to store finds no member any more.
    let late = TokenRecord { id: TokenId(call_id(&harness.clock).0), hash: "late".into(), ..of_person };
    assert!(matches!(access.insert_token(&late).await, Err(StoreError::NotFound { .. })));
    harness.store.close().await;
}

async fn an_email_address_belongs_to_one_person(harness: Harness) {
    let access = harness.store.access();
    let ann = insert(&harness, "ann").await;
    let twin = ActorRecord { email: Some("ANN@example.COM".to_owned()), ..person(&harness, "other") };
    let membership = membership(twin.id, &TenantId::default_tenant());
    let stored = access.insert_actor(twin, membership, Vec::new()).await;
    assert!(matches!(stored, Err(StoreError::Conflict(_))), "{stored:?}");
    let bob = insert(&harness, "bob").await;
    let change = ActorChange { email: Some(ann.email), ..ActorChange::default() };
    let changed = access.update_actor(bob.id, change).await;
    assert!(matches!(changed, Err(StoreError::Conflict(_))), "{changed:?}");
    harness.store.close().await;
}

async fn what_a_person_owns_is_handed_over(harness: Harness) {
    let access = harness.store.access();
    let tenant = TenantId::default_tenant();
    let [ann, bob] = [insert(&harness, "ann").await, insert(&harness, "bob").await];
    let machine = ActorRecord {
        kind: ActorKind::ServiceAccount,
        email: None,
        responsible: Some(ann.id),
        ..person(&harness, "nightly")
    };
    access.insert_actor(machine.clone(), membership(machine.id, &tenant), Vec::new()).await.unwrap();
    let chat = NewChat {
        owner: ann.id.to_string(),
        owner_name: ann.name.clone(),
        title: "Mine".to_owned(),
        agent: None,
    };
    let chat = harness.store.chats().create(&tenant, chat).await.unwrap();
    let done = access.hand_over(tenant.clone(), ann.id, (bob.id, bob.name.clone())).await.unwrap();
    assert_eq!(done, HandedOver { chats: 1, service_accounts: 1 });
    let chat = harness.store.chats().get(&tenant, chat.id).await.unwrap().unwrap();
    assert_eq!((chat.owner, chat.owner_name), (bob.id.to_string(), bob.name));
    let machine = access.actors().await.unwrap().into_iter().find(|actor| actor.id == machine.id).unwrap();
    assert_eq!(machine.responsible, Some(bob.id));
    harness.store.close().await;
}

fn own_token(harness: &Harness, name: &str) -> TokenRecord {
    let hash = haft_core::hash::of_bytes(name.as_bytes());
    let id = TokenId(call_id(&harness.clock).0);
    TokenRecord { id, hash, expires_at: None, ..token_of(&TenantId::default_tenant()) }
}

async fn a_node_learns_whose_access_changed(harness: Harness) {
    let access = harness.store.access();
    let tenant = TenantId::default_tenant();
    let (mut known, changes) = access.changes_since(None).await.unwrap();
    assert_eq!(changes, AccessChanges::Everything);
    let [ann, bob] = [insert(&harness, "ann").await, insert(&harness, "bob").await];
    let mut next = async || {
        let (reached, changes) = access.changes_since(Some(known)).await.unwrap();
        known = reached;
        changes
    };
    let of = |ids: &[ActorId]| AccessChanges::Actors(ids.iter().copied().collect());
    assert_eq!(next().await, of(&[ann.id, bob.id]));
    assert_eq!(next().await, of(&[]));
    access.insert_session(session(&harness, "hers", &login_key(ann.id, &tenant)), None).await.unwrap();
    assert_eq!(next().await, of(&[ann.id]));
    let token = TokenRecord { actor: Some(bob.id), ..own_token(&harness, "t") };
    access.insert_token(&token).await.unwrap();
    access.delete_token(token.id).await.unwrap();
    access.delete_session(session(&harness, "hers", "").hash).await.unwrap();
    assert_eq!(next().await, of(&[ann.id, bob.id]));
    access.insert_group(group(&harness, "finance", vec![ann.id])).await.unwrap();
    assert_eq!(next().await, AccessChanges::Everything);
    access.delete_membership(bob.id, tenant).await.unwrap();
    assert_eq!(next().await, of(&[bob.id]));
    // Of a database that was replaced by an older one.
    assert_eq!(access.changes_since(Some(known + 1)).await.unwrap().1, AccessChanges::Everything);
    harness.store.close().await;
}

async fn a_token_gets_an_owner_with_what_it_owns(harness: Harness) {
    let access = harness.store.access();
    let [ann, bob] = [insert(&harness, "ann").await, insert(&harness, "bob").await];
    for (name, owned, expected) in
        [("moves", OwnedByToken::MovesToOwner, true), ("stays", OwnedByToken::Stays, false)]
    {
        let token = own_token(&harness, name);
        let child = TokenRecord { parent: Some(token.id), ..own_token(&harness, &format!("{name} child")) };
        access.insert_token(&token).await.unwrap();
        access.insert_token(&child).await.unwrap();
        let (owner, owner_name) = (token.id.to_string(), name.to_owned());
        let new = NewChat { title: "Mine".to_owned(), owner, owner_name, agent: None };
        let chat = harness.store.chats().create(&token.tenant, new).await.unwrap();
        access.set_token_owner(token.id, ann.id, owned).await.unwrap();
        for id in [token.id, child.id] {
            assert_eq!(access.token(id).await.unwrap().unwrap().actor, Some(ann.id));
        }
        let chat = harness.store.chats().get(&token.tenant, chat.id).await.unwrap().unwrap();
        assert_eq!(chat.owner == ann.id.to_string(), expected, "{name}");
        let again = access.set_token_owner(token.id, bob.id, owned).await;
        assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    }
    harness.store.close().await;
}

async fn the_local_owner_is_added_once(harness: Harness) {
    let access = harness.store.access();
    for name in ["local", "Ada"] {
        access.ensure_local_owner().await.unwrap();
        let found = access.actors_by_id([LOCAL_OWNER]).await.unwrap();
        assert_eq!((found[0].name.as_str(), found[0].status), (name, ActorStatus::Active));
        let change = ActorChange {
            name: Some("Ada".to_owned()),
            rate_limit: Some((
                TenantId::default_tenant(),
                Some(CallRate { calls: 3, period: std::time::Duration::from_mins(1) }),
            )),
            ..ActorChange::default()
        };
        access.update_actor(LOCAL_OWNER, change).await.unwrap();
    }
    let memberships = access.memberships().await.unwrap();
    assert_eq!(memberships.len(), 1);
    assert!(memberships[0].rights.platform && memberships[0].rate_limit.is_some_and(|rate| rate.calls == 3));
    harness.store.close().await;
}

async fn a_deleted_tenant_leaves_no_member(harness: Harness) {
    let access = harness.store.access();
    let acme = TenantId::new("acme").unwrap();
    harness.store.tenants().create(acme.clone(), "Acme".to_owned()).await.unwrap();
    let [ann, bob] = [insert(&harness, "ann").await, insert(&harness, "bob").await];
    access.insert_membership(membership(ann.id, &acme), Vec::new()).await.unwrap();
    let only_there = person(&harness, "carl");
    access.insert_actor(only_there.clone(), membership(only_there.id, &acme), Vec::new()).await.unwrap();
    let of_acme = GroupRecord { tenant: acme.clone(), ..group(&harness, "g", vec![ann.id]) };
    access.insert_group(of_acme).await.unwrap();
    access.insert_session(session(&harness, "there", &login_key(ann.id, &acme)), None).await.unwrap();
    harness.store.tenants().delete(acme).await.unwrap();
    let left: Vec<ActorId> = access.actors().await.unwrap().into_iter().map(|actor| actor.id).collect();
    assert_eq!(left, [ann.id, bob.id]);
    assert_eq!(access.memberships().await.unwrap().len(), 2);
    assert!(access.groups().await.unwrap().is_empty() && access.sessions().await.unwrap().is_empty());
    harness.store.close().await;
}

async fn provisioned_members_are_looked_up_and_suspended(harness: Harness) {
    let access = harness.store.access();
    let tenant = TenantId::default_tenant();
    let [ann, bob] = [insert(&harness, "ann").await, insert(&harness, "bob").await];
    let group = group(&harness, "finance", vec![ann.id, bob.id]);
    access.insert_group(group.clone()).await.unwrap();
    let provisioned = Provisioned {
        user_name: "Ann@Corp.example".to_owned(),
        external_id: Some("E1".to_owned()),
        given_name: Some("Ann".to_owned()),
        family_name: None,
    };
    let change = ActorChange {
        provisioned: Some((tenant.clone(), provisioned.clone())),
        suspended: Some((tenant.clone(), true)),
        ..ActorChange::default()
    };
    let key = login_key(ann.id, &tenant);
    access.insert_session(session(&harness, "of ann", &key), None).await.unwrap();
    access.insert_session(session(&harness, "of another", "other"), None).await.unwrap();
    access.update_actor(ann.id, change).await.unwrap();
    assert_eq!(access.sessions().await.unwrap().len(), 1);
    let find = async |key: MemberKey<'_>| access.member_id(&tenant, key).await.unwrap();
    let MemberRecords { actors, memberships, assigned, groups, tokens } =
        access.member_records(&[ann.id]).await.unwrap();
    assert!(assigned.is_empty() && tokens.is_empty());
    assert_eq!(actors.iter().map(|actor| actor.id).collect::<Vec<_>>(), [ann.id]);
    assert_eq!(
        (memberships[0].is_suspended, memberships[0].provisioned.clone()),
        (true, Some(provisioned.clone()))
    );
    assert_eq!(groups, [GroupRecord { members: vec![ann.id], ..group }]);
    for key in [
        MemberKey::UserName("ANN@corp.example"),
        MemberKey::ExternalId("E1"),
        MemberKey::Id(ann.id),
        MemberKey::Email("ANN@example.com"),
    ] {
        assert_eq!(find(key).await, Some(ann.id));
    }
    assert_eq!(access.members_named(&tenant, ann.kind, &ann.name).await.unwrap(), [ann.id]);
    assert_eq!(access.member_count(&tenant).await.unwrap(), 2);
    // By the e-mail address only if there is no user name.
    assert_eq!(find(MemberKey::UserName("BOB@example.com")).await, Some(bob.id));
    for key in [MemberKey::UserName("ann@example.com"), MemberKey::ExternalId("e1"), MemberKey::UserName("")]
    {
        assert_eq!(find(key).await, None);
    }
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(access.member_id(&acme, MemberKey::Id(ann.id)).await.unwrap(), None);
    for (user_name, external_id, expected) in [
        ("ANN@corp.example", None, "another member has this user name"),
        ("bob", Some("E1".to_owned()), "another member has this external id"),
    ] {
        let provisioned =
            Provisioned { user_name: user_name.to_owned(), external_id, ..Provisioned::default() };
        let change =
            ActorChange { provisioned: Some((tenant.clone(), provisioned)), ..ActorChange::default() };
        match access.update_actor(bob.id, change).await {
            Err(StoreError::Conflict(message)) => assert_eq!(message, expected),
            other => panic!("{other:?}"),
        }
    }
    harness.store.close().await;
}

async fn members_of_groups_are_added_and_removed(harness: Harness) {
    let access = harness.store.access();
    let [ann, bob] = [insert(&harness, "ann").await, insert(&harness, "bob").await];
    let group = group(&harness, "finance", vec![ann.id]);
    access.insert_group(group.clone()).await.unwrap();
    let edit = async |add: &[ActorId], remove: &[ActorId]| {
        let change = MembersChange::Edit { add: add.to_vec(), remove: remove.to_vec(), limit: 2 };
        let change = GroupChange { members: Some(change), ..GroupChange::default() };
        access.update_group(group.id, change).await
    };
    let (only_ann, only_bob) = ([ann.id], [bob.id]);
    let (first, second) = tokio::join!(edit(&only_bob, &[]), edit(&only_ann, &[]));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(access.groups().await.unwrap()[0].members, [ann.id, bob.id]);
    let carl = insert(&harness, "carl").await;
    assert!(matches!(edit(&[carl.id], &[]).await, Err(StoreError::Conflict(_))));
    edit(&[carl.id], &[ann.id, bob.id]).await.unwrap();
    assert_eq!(access.groups().await.unwrap()[0].members, [carl.id]);
    let change = GroupChange { provisioned: Some(Some("G1".to_owned())), ..GroupChange::default() };
    access.update_group(group.id, change).await.unwrap();
    let found = access.groups().await.unwrap().remove(0);
    assert_eq!((found.is_provisioned, found.external_id.as_deref()), (true, Some("G1")));
    harness.store.close().await;
}
