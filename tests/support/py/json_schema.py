# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/reference/report.schema.json uses of JSON Schema, without a package for all of it."""
from harness import check

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_of(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check_schema(value, schema, root=None, path="$"):
    """Checks a value against type, enum, minimum, required, properties, additionalProperties, items and $ref."""
    root = root or schema
    unknown = set(schema) - {"$schema", "$id", "$ref", "$defs", "title", "description", "type", "enum", "minimum",
                             "required", "properties", "additionalProperties", "items"}
    check(not unknown, f"the schema has {unknown}, which this does not know")
    if "$ref" in schema:
        return check_schema(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    check(not names or any(is_of(value, name) for name in names), f"{path} is {value!r}, should be {names}")
    check("enum" not in schema or value in schema["enum"], f"{path} is {value!r}")
    check("minimum" not in schema or value is None or value >= schema["minimum"], f"{path} is {value}")
    if isinstance(value, dict):
        check_members(value, schema, root, path)
    if isinstance(value, list) and "items" in schema:
        for i, element in enumerate(value):
            check_schema(element, schema["items"], root, f"{path}[{i}]")


def check_members(value, schema, root, path):
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    missing = set(schema.get("required", [])) - set(value)
    check(not missing, f"{path} lacks {missing}")
    for name, member in value.items():
        if name in properties:
            check_schema(member, properties[name], root, f"{path}.{name}")
        elif isinstance(others, dict):
            check_schema(member, others, root, f"{path}.{name}")
        else:
            check(others, f"{path}.{name} is not in the schema")
