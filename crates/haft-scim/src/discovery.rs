//! What the server can do: the documents of RFC 7643, sections 5 to 7.

use serde_json::{Value, json};

use crate::MAX_RESULTS;
use crate::schema::{Attribute, Kind, Mutability, ResourceType, is_boolean, is_case_exact};

const CONFIG_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig";
const TYPE_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:ResourceType";
const SCHEMA_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Schema";
const TYPES: [ResourceType; 2] = [ResourceType::User, ResourceType::Group];

/// Returns the `ServiceProviderConfig`.
pub fn service_provider_config(base: &str) -> Value {
    json!({
        "schemas": [CONFIG_SCHEMA],
        "patch": {"supported": true},
        "bulk": {"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": true, "maxResults": MAX_RESULTS},
        "changePassword": {"supported": false},
        "sort": {"supported": false},
        "etag": {"supported": false},
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "Bearer token",
            "description": "A token of haft with the role `admin`",
            "specUri": "https://www.rfc-editor.org/rfc/rfc6750",
            "primary": true,
        }],
        "meta": {"resourceType": "ServiceProviderConfig", "location": format!("{base}/ServiceProviderConfig")},
    })
}

/// Returns the types of resources.
pub fn resource_types(base: &str) -> Vec<Value> {
    let document = |resource: ResourceType| {
        json!({
            "schemas": [TYPE_SCHEMA],
            "id": resource.as_str(),
            "name": resource.as_str(),
            "endpoint": format!("/{}", resource.path()),
            "description": match resource {
                ResourceType::User => "A person who is a member of the tenant",
                ResourceType::Group => "A group of the tenant",
            },
            "schema": resource.schema(),
            "schemaExtensions": [],
            "meta": {
                "resourceType": "ResourceType",
                "location": format!("{base}/ResourceTypes/{}", resource.as_str()),
            },
        })
    };
    TYPES.map(document).to_vec()
}

/// Returns the schemas.
pub fn schemas(base: &str) -> Vec<Value> {
    let document = |resource: ResourceType| {
        // Those that are ignored, and those that every resource has, are not part of a schema.
        let is_own = |attribute: &&Attribute| {
            attribute.mutability != Mutability::Ignored
                && !["schemas", "id", "meta", "externalId"].contains(&attribute.name)
        };
        let attributes: Vec<Value> = resource.attributes().iter().filter(is_own).map(attribute).collect();
        json!({
            "schemas": [SCHEMA_SCHEMA],
            "id": resource.schema(),
            "name": resource.as_str(),
            "description": resource.as_str(),
            "attributes": attributes,
            "meta": {"resourceType": "Schema", "location": format!("{base}/Schemas/{}", resource.schema())},
        })
    };
    TYPES.map(document).to_vec()
}

fn attribute(attribute: &Attribute) -> Value {
    let is_name = ["userName", "displayName"].contains(&attribute.name);
    let mut found = described(attribute.name, attribute.description, None);
    if let Value::Object(object) = &mut found {
        let kind = match attribute.kind {
            Kind::Text => "string",
            Kind::Boolean => "boolean",
            Kind::Complex(_) | Kind::Multi(_) => "complex",
        };
        object.insert("type".to_owned(), kind.into());
        object.insert("multiValued".to_owned(), matches!(attribute.kind, Kind::Multi(_)).into());
        let mutability = if attribute.mutability == Mutability::ReadOnly { "readOnly" } else { "readWrite" };
        object.insert("mutability".to_owned(), mutability.into());
        let is_required = attribute.name == "userName"
            || (attribute.name == "displayName"
                && attribute.description.starts_with("The name of the group"));
        object.insert("required".to_owned(), is_required.into());
        if is_name && is_required {
            object.insert("uniqueness".to_owned(), "server".into());
        }
        if let Kind::Complex(parts) | Kind::Multi(parts) = attribute.kind {
            let parts = parts
                .iter()
                .filter(|part| !["middleName", "honorificPrefix", "honorificSuffix"].contains(part));
            let parts: Vec<Value> = parts.map(|part| described(part, "", Some(attribute.name))).collect();
            object.insert("subAttributes".to_owned(), parts.into());
        }
    }
    found
}

fn described(name: &str, description: &str, parent: Option<&str>) -> Value {
    let (attribute, sub) = match parent {
        Some(parent) => (parent, Some(name)),
        None => (name, None),
    };
    json!({
        "name": name,
        "type": match name {
            "$ref" => "reference",
            _ if is_boolean(attribute, sub) => "boolean",
            _ => "string",
        },
        "multiValued": false,
        "description": description,
        "required": false,
        "caseExact": is_case_exact(attribute, sub),
        "mutability": if parent == Some("groups") { "readOnly" } else { "readWrite" },
        "returned": "default",
        "uniqueness": "none",
    })
}
