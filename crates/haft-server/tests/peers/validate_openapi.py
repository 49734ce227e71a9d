"""Validates an OpenAPI document (standard input) and every example in it; prints the problems as JSON."""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

METHODS = ("get", "put", "post", "patch", "delete")
document = json.load(sys.stdin)
problems = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in OpenAPIV31SpecValidator(document).iter_errors()]


def resolve(value):
    while "$ref" in value:
        target = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        value = target
    return value


def check(where, content):
    for media_type, body in content.items():
        place = f"{where} {media_type}"
        schema = body.get("schema")
        if not schema:
            problems.append(f"{place}: no schema")
            continue
        full = resolve(schema)
        if full.get("type") == "object" and not full.get("properties") and full.get("additionalProperties") is True:
            problems.append(f"{place}: an object without known fields")
        if "example" not in body and "examples" not in body:
            problems.append(f"{place}: no example")
            continue
        examples = [body["example"]] if "example" in body else [e["value"] for e in body["examples"].values()]
        validator = Draft202012Validator({**schema, "components": document["components"]})
        for example in examples:
            problems.extend(f"{place}: example: {e.json_path}: {e.message[:200]}" for e in validator.iter_errors(example))


for path, item in document["paths"].items():
    for method in METHODS:
        operation = item.get(method)
        if not operation:
            continue
        name = f"{method.upper()} {path}"
        if "requestBody" in operation:
            check(f"{name} request", operation["requestBody"]["content"])
        for status, response in operation["responses"].items():
            response = resolve(response)
            if not response.get("description"):
                problems.append(f"{name} {status}: no description")
            if "content" not in response and status.startswith("3"):
                continue  # A redirect.
            if "content" not in response:
                problems.append(f"{name} {status}: no body")
                continue
            check(f"{name} {status}", response["content"])

print(json.dumps(problems, indent=1))
