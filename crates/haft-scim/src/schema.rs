//! The attributes of users and groups: which exist, which are stored, and how they are compared.

/// The schema of users.
pub const USER_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
/// The schema of groups.
pub const GROUP_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";
/// The schema of lists.
pub const LIST_SCHEMA: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
/// The extension of users for employees; accepted, not stored.
pub(crate) const ENTERPRISE_SCHEMA: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
/// The schemas that paths may name.
pub(crate) const KNOWN_SCHEMAS: [&str; 3] = [USER_SCHEMA, GROUP_SCHEMA, ENTERPRISE_SCHEMA];

/// The types of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceType {
    /// A person.
    User,
    /// A group.
    Group,
}

impl ResourceType {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResourceType::User => "User",
            ResourceType::Group => "Group",
        }
    }

    /// Returns the path below the base URL.
    pub const fn path(self) -> &'static str {
        match self {
            ResourceType::User => "Users",
            ResourceType::Group => "Groups",
        }
    }

    /// Returns the schema.
    pub const fn schema(self) -> &'static str {
        match self {
            ResourceType::User => USER_SCHEMA,
            ResourceType::Group => GROUP_SCHEMA,
        }
    }

    /// Returns the attributes.
    pub(crate) const fn attributes(self) -> &'static [Attribute] {
        match self {
            ResourceType::User => USER,
            ResourceType::Group => GROUP,
        }
    }

    /// Finds an attribute, whatever the case of its name.
    pub(crate) fn attribute(self, name: &str) -> Option<&'static Attribute> {
        self.attributes().iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))
    }
}

/// An attribute of a resource.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) mutability: Mutability,
    pub(crate) description: &'static str,
}

/// The values of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Boolean,
    /// An object with these attributes.
    Complex(&'static [&'static str]),
    /// A list of objects with these attributes.
    Multi(&'static [&'static str]),
}

/// Who changes an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutability {
    ReadWrite,
    /// Only haft.
    ReadOnly,
    /// Clients may send it; it is not stored.
    Ignored,
}

impl Attribute {
    /// Finds the name of an attribute of its values, whatever the case.
    pub(crate) fn sub(&self, name: &str) -> Option<&'static str> {
        let (Kind::Complex(names) | Kind::Multi(names)) = self.kind else { return None };
        names.iter().copied().find(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Returns whether the case of a text counts: that of ids does.
pub(crate) fn is_case_exact(attribute: &str, sub: Option<&str>) -> bool {
    let is = |name: &str| attribute.eq_ignore_ascii_case(name);
    let is_of_reference =
        (is("members") || is("groups")) && sub.is_none_or(|sub| sub == "value" || sub == "$ref");
    is("id") || is("externalId") || is_of_reference
}

/// Returns whether values are `true` or `false`.
pub(crate) fn is_boolean(attribute: &str, sub: Option<&str>) -> bool {
    let last = sub.unwrap_or(attribute);
    last.eq_ignore_ascii_case("active") || last.eq_ignore_ascii_case("primary")
}

const fn stored(name: &'static str, kind: Kind, description: &'static str) -> Attribute {
    Attribute { name, kind, mutability: Mutability::ReadWrite, description }
}

const fn read_only(name: &'static str, kind: Kind, description: &'static str) -> Attribute {
    Attribute { name, kind, mutability: Mutability::ReadOnly, description }
}

const fn ignored(name: &'static str, kind: Kind) -> Attribute {
    Attribute { name, kind, mutability: Mutability::Ignored, description: "" }
}

const META: &[&str] = &["resourceType", "created", "lastModified", "location", "version"];
const VALUE: &[&str] = &["value", "display", "type", "primary", "$ref"];
const REFERENCE: &[&str] = &["value", "$ref", "display", "type"];
const NAME: &[&str] =
    &["formatted", "familyName", "givenName", "middleName", "honorificPrefix", "honorificSuffix"];
const ADDRESS: &[&str] = &[
    "formatted",
    "streetAddress",
    "locality",
    "region",
    "postalCode",
    "country",
    "type",
    "primary",
    "value",
    "display",
];

const USER: &[Attribute] = &[
    read_only("schemas", Kind::Text, ""),
    read_only("id", Kind::Text, ""),
    stored("externalId", Kind::Text, ""),
    read_only("meta", Kind::Complex(META), ""),
    stored(
        "userName",
        Kind::Text,
        "The name with which the identity provider identifies the user; no two have the same.",
    ),
    stored("name", Kind::Complex(NAME), "The parts of the name."),
    stored("displayName", Kind::Text, "The name of the person in haft."),
    stored("emails", Kind::Multi(VALUE), "E-mail addresses, of which the primary one is stored."),
    stored("active", Kind::Boolean, "Whether the user has access."),
    read_only("groups", Kind::Multi(REFERENCE), "The groups of the user."),
    ignored("nickName", Kind::Text),
    ignored("profileUrl", Kind::Text),
    ignored("title", Kind::Text),
    ignored("userType", Kind::Text),
    ignored("preferredLanguage", Kind::Text),
    ignored("locale", Kind::Text),
    ignored("timezone", Kind::Text),
    ignored("password", Kind::Text),
    ignored("phoneNumbers", Kind::Multi(VALUE)),
    ignored("ims", Kind::Multi(VALUE)),
    ignored("photos", Kind::Multi(VALUE)),
    ignored("addresses", Kind::Multi(ADDRESS)),
    ignored("entitlements", Kind::Multi(VALUE)),
    ignored("roles", Kind::Multi(VALUE)),
    ignored("x509Certificates", Kind::Multi(VALUE)),
];

const GROUP: &[Attribute] = &[
    read_only("schemas", Kind::Text, ""),
    read_only("id", Kind::Text, ""),
    stored("externalId", Kind::Text, ""),
    read_only("meta", Kind::Complex(META), ""),
    stored("displayName", Kind::Text, "The name of the group; no two have the same."),
    stored("members", Kind::Multi(REFERENCE), "The users in the group."),
];
