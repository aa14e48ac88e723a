"""The OpenAPI 3.1 document, made of the route table and the Structs, so that it cannot say anything else."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from signoff.errors import (
    ActionRefused,
    BodyTooLarge,
    ClaimRefused,
    InsufficientScope,
    InvalidInput,
    SaveUnknown,
    SignoffError,
    StoreUnavailable,
    Unauthenticated,
)
from signoff.server.faults import BadRequest, ErrorAnswer, InvalidJson, RequestTimeout, WrongHost
from signoff.server.routes import Route
from signoff.server.views import EventView

REF = "#/components/schemas/{name}"
EVERYWHERE: tuple[type[SignoffError], ...] = (BadRequest, WrongHost, InvalidInput)
WITH_BODY: tuple[type[SignoffError], ...] = (InvalidJson, BodyTooLarge, RequestTimeout)
WITH_KEY: tuple[type[SignoffError], ...] = (Unauthenticated, InsufficientScope, SaveUnknown, StoreUnavailable)
_PARAMETER = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=2)
def document(routes: tuple[Route, ...], version: str) -> bytes:
    """The document as JSON."""
    types = _types(routes)
    _, components = msgspec.json.schema_components(types, ref_template=REF)
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for entry in routes:
        paths[entry.path][entry.method.lower()] = _operation(entry)
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "Signoff",
            "version": version,
            "description": "A gateway that gets a person's sign-off for what an agent is about to do.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, `sk_<id>_<secret>`. Make one with `signoff key create`.",
                }
            },
        },
    }
    return msgspec.json.encode(whole)


def errors_of(entry: Route) -> dict[int, list[str]]:
    """The error codes that a route can answer with, by status."""
    found: dict[int, list[str]] = defaultdict(list)
    classes = [*EVERYWHERE, *entry.errors]
    classes += WITH_BODY if entry.body is not None else (BodyTooLarge, RequestTimeout)
    classes += WITH_KEY if entry.scopes else ()
    for kind in dict.fromkeys(classes):
        codes = entry.error_codes if kind in (ActionRefused, ClaimRefused) else (kind.code,)
        found[kind.status].extend(code for code in codes if code not in found[kind.status])
    found[500].append("internal_error")
    return dict(found)


def _types(routes: tuple[Route, ...]) -> list[Any]:
    named: list[Any] = [ErrorAnswer, EventView]
    for entry in routes:
        named += [kind for kind in (entry.body, entry.answer) if kind is not None]
    return list(dict.fromkeys(named))


def _operation(entry: Route) -> dict[str, Any]:
    scopes = f" Scopes: {', '.join(sorted(entry.scopes))}." if entry.scopes else " Needs no key."
    operation: dict[str, Any] = {
        "operationId": entry.name,
        "summary": entry.text.split(". ")[0].rstrip("."),
        "description": entry.text + scopes,
        "parameters": [*_in_path(entry), *_in_query(entry.query)],
        "responses": _responses(entry),
        "security": [{"key": []}] if entry.scopes else [],
    }
    if entry.body is not None:
        operation["requestBody"] = {
            "required": entry.body_needed,
            "content": {"application/json": {"schema": _ref(entry.body)}},
        }
    return operation


def _in_path(entry: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(entry.path)
    ]


def _in_query(query: type[Struct]) -> list[dict[str, Any]]:
    _, components = msgspec.json.schema_components([query], ref_template=REF)
    properties: dict[str, Any] = components[query.__name__].get("properties", {})
    found = []
    for name, schema in properties.items():
        parameter = {"name": name, "in": "query", "required": False, "schema": _query_schema(schema)}
        if "description" in schema:
            parameter["description"] = schema["description"]
        found.append(parameter)
    return found


def _query_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A query parameter is absent, never null."""
    plain = {name: value for name, value in schema.items() if name not in ("description", "default")}
    if schema.get("default") is not None:
        plain["default"] = schema["default"]
    options = [option for option in plain.pop("anyOf", ()) if option != {"type": "null"}]
    if options:
        plain.update(options[0])
    if "enum" in plain:
        plain["enum"] = [value for value in plain["enum"] if value is not None]
    return plain


def _responses(entry: Route) -> dict[str, Any]:
    content: dict[str, Any] = {entry.content_type: {"schema": {"type": "string"}}}
    if entry.content_type == "application/json":
        content = {entry.content_type: {"schema": _ref(entry.answer) if entry.answer else {"type": "object"}}}
    responses: dict[str, Any] = {
        str(status): {"description": entry.text, "content": content} for status in entry.statuses
    }
    for status, codes in sorted(errors_of(entry).items()):
        answer = {
            "description": "Error codes: " + ", ".join(f"`{code}`" for code in codes) + ".",
            "content": {"application/json": {"schema": _ref(ErrorAnswer)}},
        }
        if str(status) not in responses:
            responses[str(status)] = answer
    return responses


def _ref(kind: type[Struct]) -> dict[str, str]:
    return {"$ref": REF.format(name=kind.__name__)}
