"""docs/openapi.json is true to the code it describes, and the check that holds answers against it finds what is wrong."""

import json
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from openapi_check import ANNOTATIONS, Contract, Mismatch, Schemas  # noqa: E402

CONTRACT = Contract()
SCHEMAS = CONTRACT.document["components"]["schemas"]
RESULTS = sorted((ROOT / "tests/unit/explain/results").glob("*.json"))
JSON = {"Content-Type": "application/json"}
PROBLEM = {"Content-Type": "application/problem+json"}
ID = "0123456789abcdef0123456789abcdef"


def references(node):
    if isinstance(node, dict):
        yield from ([node["$ref"]] if "$ref" in node else [])
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_reference_leads_somewhere_and_every_component_is_used():
    used = set(references(CONTRACT.document))
    for reference in used:
        assert CONTRACT.schemas.resolve({"$ref": reference}) is not None, reference
    for kind in ("schemas", "responses", "parameters"):
        for name in CONTRACT.document["components"][kind]:
            assert f"#/components/{kind}/{name}" in used, name


def schemas_within(schema):
    """A schema and those it is made of."""
    yield schema
    for keyword in ("allOf", "anyOf", "oneOf"):
        for one in schema.get(keyword, []):
            yield from schemas_within(one)
    parts = list(schema.get("properties", {}).values()) + [schema.get("items"), schema.get("additionalProperties")]
    for one in parts:
        if isinstance(one, dict):
            yield from schemas_within(one)


def test_every_schema_uses_known_keywords_only():
    for name, schema in SCHEMAS.items():
        for one in schemas_within(schema):
            known = set(CONTRACT.schemas.keywords) | ANNOTATIONS | {"$ref"}
            assert set(one) <= known, f"{name}: {set(one) - known}"


def test_request_has_the_fields_that_the_parser_reads():
    source = (ROOT / "src/plan/request_json.c").read_text()
    table = source[source.index("} fields[] = {"):]
    names = re.findall(r'^    \{"(\w+)",', table[:table.index("};")], re.M)
    assert set(names) == set(SCHEMAS["Request"]["properties"])
    for name, schema in SCHEMAS["Request"]["properties"].items():
        assert "description" in CONTRACT.schemas.resolve(schema), name


def test_limits_have_the_names_of_the_table():
    names = set(re.findall(r'"(\w+)",\s*LIMIT_KIND_', (ROOT / "src/plan/limits.c").read_text()))
    assert names == set(SCHEMAS["LimitsRequest"]["properties"]) == set(SCHEMAS["Limits"]["properties"])


def test_statuses_are_the_engine_s():
    names = re.findall(r'\[CORDON_STATUS_\w+\] = \{"(\w+)"', (ROOT / "src/engine/result.c").read_text())
    assert set(names) == set(SCHEMAS["Status"]["enum"])


@pytest.mark.parametrize("path", RESULTS, ids=lambda p: p.stem)
def test_real_results_fit(path):
    result = json.loads(path.read_text())
    result.setdefault("id", ID)  # one that was refused on the command line has none
    CONTRACT.check("POST", "/v1/execute", '{"language": "python", "code": ""}', 200, JSON, json.dumps(result))


def test_paths_and_methods():
    methods = {path: sorted(m for m in item if m != "parameters") for path, item in CONTRACT.document["paths"].items()}
    assert methods == {
        "/v1/execute": ["post"], "/v1/executions": ["get", "post"], "/v1/executions/{id}": ["delete", "get"],
        "/v1/executions/{id}/events": ["get"], "/v1/executions/{id}/report": ["get"], "/v1/tests": ["post"],
        "/v1/batches": ["post"], "/v1/batches/{id}": ["get"], "/v1/languages": ["get"], "/v1/environments": ["get"],
        "/v1/limits": ["get"], "/healthz": ["get"], "/readyz": ["get"], "/metrics": ["get"], "/openapi.json": ["get"],
        "/": ["get"]}


GOOD_REQUESTS = [
    {"language": "python", "code": "print(1)"},
    {"language": "c", "files": {"a.c": "", "b": {"base64": "AA=="}}, "entry": "a.c", "args": ["x"], "stdin": "y",
     "env": {"A": "b", "S": {"value": "s", "secret": True}}, "profile": "heavy", "isolation": "container", "warm": False, "pty": True,
     "limits": {"wall_ms": "5s", "cpu_ms": 100, "cpus": 0.5, "memory_bytes": "512m", "output_bytes": "unlimited"},
     "mounts": ["/a:/b", {"source": "/a", "destination": "/b", "writable": True}], "sanitize": ["aws_access_key"],
     "collect": ["*.txt"], "optional": ["landlock"], "on_output_limit": "stop", "output_encoding": "base64"},
]

BAD_REQUESTS = [
    ({"code": "x"}, "'language' is missing"),
    ({"language": "python", "cod": "x"}, "/cod: is not in the schema"),
    ({"language": 3}, "/language: 3 is not of type string"),
    ({"language": "python", "limits": {"wall_ms": 0}}, "/limits/wall_ms: 0 is below 1"),
    ({"language": "python", "limits": {"memory_bytes": "12q"}}, "/limits/memory_bytes"),
    ({"language": "python", "limits": {"memory_bytes": "unlimited"}}, "/limits/memory_bytes"),
    ({"language": "python", "profile": "tiny"}, "/profile"),
    ({"language": "python", "files": {"a/b": {"base64": "?"}}}, "/files/a~1b/base64"),
    ({"language": "python", "files": {"a": 1}}, "/files/a"),
    ({"language": "python", "env": {"A": {"secret": True}}}, "'value' is missing"),
    ({"language": "python", "sanitize": "some"}, "/sanitize: fits none"),
    ({"language": "python", "optional": ["magic"]}, "/optional/0"),
    ({"language": "python", "warm": 1}, "/warm"),
    ({"language": "python", "pty": "yes"}, "/pty"),
    ([], "is not of type object"),
]


@pytest.mark.parametrize("request_body", GOOD_REQUESTS)
def test_good_requests_fit(request_body):
    answer = json.dumps({"id": ID, "state": "queued"})
    CONTRACT.check("POST", "/v1/executions", json.dumps(request_body), 202, {**JSON, "Location": "/v1/executions/" + ID}, answer)


@pytest.mark.parametrize("request_body,message", BAD_REQUESTS, ids=lambda v: None)
def test_bad_requests_do_not(request_body, message):
    with pytest.raises(Mismatch, match=re.escape(message)):
        CONTRACT.check("POST", "/v1/execute", json.dumps(request_body), 200, JSON,
                       json.dumps({"id": ID, "state": "done", "status": "ok"}))


def test_a_request_that_was_refused_may_be_anything():
    problem = json.dumps({"title": "Bad input", "status": 400, "code": "invalid", "field": "/limits/wall_ms"})
    CONTRACT.check("POST", "/v1/execute", "{", 400, PROBLEM, problem)


PROBLEM_400 = {"title": "Bad input", "status": 400, "code": "invalid"}

BAD_ANSWERS = [
    ("GET", f"/v1/executions/{ID}", 418, JSON, "{}", "Content-Type"),
    ("GET", f"/v1/executions/{ID}", 201, JSON, "{}", "status 201 is not in the file"),
    ("GET", f"/v1/executions/{ID}", 200, JSON, "{}", "'id' is missing"),
    ("GET", f"/v1/executions/{ID}", 200, JSON, "{", "not JSON"),
    ("GET", f"/v1/executions/{ID}", 200, JSON, b"\xff", "not UTF-8"),
    ("GET", f"/v1/executions/{ID}", 200, {"Content-Type": "text/html"}, "", "Content-Type is 'text/html'"),
    ("GET", f"/v1/executions/{ID}", 200, JSON, json.dumps({"id": "1", "state": "done", "status": "ok"}), "/id"),
    ("GET", f"/v1/executions/{ID}", 200, JSON, json.dumps({"id": ID, "state": "done", "status": "fine"}), "/status"),
    ("GET", f"/v1/executions/{ID}", 200, JSON, json.dumps({"id": ID, "state": "done", "status": "ok", "new": 1}), "/new"),
    ("GET", "/v1/executions/17", 200, JSON, json.dumps({"id": ID, "state": "done", "status": "ok"}), "path id"),
    ("GET", "/v1/executions?limit=1", 200, JSON, json.dumps({"items": []}), "'next_cursor' is missing"),
    ("DELETE", f"/v1/executions/{ID}", 204, {}, "text", "a body came"),
    ("POST", "/v1/executions", 429, PROBLEM, json.dumps({**PROBLEM_400, "status": 429}), "Retry-After is missing"),
    ("POST", "/v1/executions", 429, {**PROBLEM, "Retry-After": "soon"}, json.dumps({**PROBLEM_400, "status": 429}), "whole number"),
    ("POST", "/v1/executions", 400, PROBLEM, json.dumps({**PROBLEM_400, "status": 422}), "is not the answer's"),
    ("POST", "/v1/executions", 400, PROBLEM, json.dumps({**PROBLEM_400, "field": "language"}), "/field"),
    ("POST", "/v1/executions", 400, JSON, json.dumps(PROBLEM_400), "application/problem+json"),
    ("GET", "/v1/nothing", 200, JSON, "{}", "is not in the file"),
    ("PUT", "/v1/execute", 200, JSON, "{}", "is not in the file"),
    ("GET", "/v1/nothing", 404, PROBLEM, "{}", "'title' is missing"),
]


@pytest.mark.parametrize("method,path,status,headers,body,message", BAD_ANSWERS, ids=lambda v: None)
def test_bad_answers_are_found(method, path, status, headers, body, message):
    with pytest.raises(Mismatch, match=re.escape(message)):
        CONTRACT.check(method, path, None, status, headers, body)


def test_good_answers_fit():
    CONTRACT.check("DELETE", f"/v1/executions/{ID}", None, 204, {}, b"")
    CONTRACT.check("GET", "/healthz", None, 200, {"content-type": "application/json; charset=utf-8"}, b'{"status": "ok"}')
    CONTRACT.check("GET", "/metrics", None, 200, {"Content-Type": "text/plain; version=0.0.4"}, b"a 1\n")
    CONTRACT.check("GET", "/v1/nothing", None, 404, PROBLEM, json.dumps({**PROBLEM_400, "status": 404, "code": "not_found"}))
    CONTRACT.check("GET", f"/v1/executions/{ID}/report", None, 200, {"Content-Type": "text/plain"}, "ok\n")
    CONTRACT.check("GET", "/openapi.json", None, 200, JSON, json.dumps(CONTRACT.document))


RESULT_EVENT = {"type": "result", "result": {"id": ID, "state": "done", "status": "ok"}}
STREAM = [{"type": "start", "id": ID}, {"type": "stdout", "offset": 0, "data": "a\n"}, {"type": "ping"}, RESULT_EVENT]


def as_ndjson(events):
    return "".join(json.dumps(e) + "\n" for e in events)


def as_sse(events, name=lambda e: e["type"]):
    return ": a comment\n\n" + "".join(f"event: {name(e)}\ndata: {json.dumps(e)}\n\n" for e in events)


def check_stream(media, text):
    CONTRACT.check("POST", "/v1/execute", '{"language": "sh", "code": ""}', 200, {"Content-Type": media}, text)


def test_streams():
    check_stream("application/x-ndjson", as_ndjson(STREAM))
    check_stream("text/event-stream", as_sse(STREAM))
    for events, message in [(STREAM[:-1], "the stream ends with ping"), ([], "ends with nothing"),
                            ([{"type": "stdout", "data": "x"}, RESULT_EVENT], "event 0: fits none"),
                            ([{"type": "news"}, RESULT_EVENT], "event 0: fits none")]:
        with pytest.raises(Mismatch, match=message):
            check_stream("application/x-ndjson", as_ndjson(events))
    with pytest.raises(Mismatch, match="event 0 is not JSON"):
        check_stream("application/x-ndjson", "nonsense\n")
    with pytest.raises(Mismatch, match="`event: other` has type"):
        check_stream("text/event-stream", as_sse(STREAM, name=lambda e: "other"))


def test_schema_keywords():
    schemas = Schemas({"components": {"a/b": {"type": "integer"}}})
    for schema, good, bad in [
            ({"type": ["integer", "null"]}, [1, None, 2.0], [True, "1", 1.5]),
            ({"type": "boolean"}, [True], [1, None]),
            ({"enum": [1, "a"]}, [1, "a"], [True, "b"]),
            ({"const": 1}, [1], [True, 2]),
            ({"pattern": "^a$"}, ["a", 5], ["b"]),
            ({"minimum": 1, "maximum": 2}, [1, 2, "x"], [0, 3]),
            ({"minLength": 1, "maxLength": 2}, ["a", 5], ["", "abc"]),
            ({"minItems": 1, "maxItems": 2, "items": {"type": "integer"}}, [[1], "x"], [[], [1, 2, 3], ["a"]]),
            ({"required": ["a"], "properties": {"a": {"type": "null"}}, "additionalProperties": False},
             [{"a": None}, 3], [{}, {"a": 1}, {"a": None, "b": 1}]),
            ({"additionalProperties": {"type": "integer"}}, [{"x": 1}], [{"x": "1"}]),
            ({"$ref": "#/components/a~1b"}, [1], ["1"]),
            ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, [1, 1.5], ["x"]),
            ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, [1.5], [1, "x"]),
            ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1], [0, 3])]:
        for value in good:
            assert not schemas.errors(schema, value), (schema, value)
        for value in bad:
            assert schemas.errors(schema, value), (schema, value)
    with pytest.raises(ValueError, match="multipleOf"):
        schemas.errors({"multipleOf": 2}, 4)
