"""Whether a request and its answer fit docs/openapi.json.

Knows the part of OpenAPI 3.1 and JSON Schema that the file uses, and fails on a keyword that it does not know, so that
nothing in the file is silently unchecked. No dependencies: every end-to-end test sends its answers through it.
"""

import json
import pathlib
import re
import sys

DEFAULT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "openapi.json"

# Keywords that say nothing about validity.
ANNOTATIONS = {"title", "description", "default", "examples", "deprecated", "format", "$comment"}


class Mismatch(Exception):
    """A message per departure, each with where it is."""


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "number": _is_number,
    "integer": lambda v: _is_number(v) and (isinstance(v, int) or v.is_integer()),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def _shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _pointer(where, key):
    return f"{where}/{str(key).replace('~', '~0').replace('/', '~1')}"


class Schemas:
    """JSON Schema over one document, whose references are all local."""

    def __init__(self, document):
        self.document = document
        self.keywords = {
            "type": self._type, "enum": self._enum, "const": self._const, "pattern": self._pattern,
            "minimum": self._minimum, "maximum": self._maximum, "minLength": self._min_length,
            "maxLength": self._max_length, "minItems": self._min_items, "maxItems": self._max_items,
            "items": self._items, "properties": self._properties, "required": self._required,
            "additionalProperties": self._additional, "allOf": self._all_of, "anyOf": self._any_of,
            "oneOf": self._one_of,
        }

    def resolve(self, node):
        while isinstance(node, dict) and "$ref" in node:
            path = node["$ref"]
            if not path.startswith("#/"):
                raise ValueError(f"{path}: only references within the file are known")
            node = self.document
            for part in path[2:].split("/"):
                node = node[part.replace("~1", "/").replace("~0", "~")]
        return node

    def errors(self, schema, value, where=""):
        """Every departure of the value, each as `pointer: what`."""
        schema = self.resolve(schema)
        if isinstance(schema, bool):
            return [] if schema else [f"{where or '/'}: nothing is allowed here"]
        found = []
        for keyword, argument in schema.items():
            if keyword in ANNOTATIONS or keyword.startswith("x-"):
                continue
            if keyword not in self.keywords:
                raise ValueError(f"the schema uses '{keyword}', which openapi_check does not know")
            found += self.keywords[keyword](argument, value, where, schema)
        return found

    @staticmethod
    def _say(where, text):
        return [f"{where or '/'}: {text}"]

    def _type(self, names, value, where, _):
        names = [names] if isinstance(names, str) else names
        if any(TYPES[name](value) for name in names):
            return []
        return self._say(where, f"{_shown(value)} is not of type {' or '.join(names)}")

    def _enum(self, allowed, value, where, _):
        # In Python True is 1; in JSON it is not.
        if any(type(one) is type(value) and one == value for one in allowed):
            return []
        return self._say(where, f"{_shown(value)} is none of {_shown(allowed)}")

    def _const(self, only, value, where, schema):
        return self._enum([only], value, where, schema)

    def _pattern(self, pattern, value, where, _):
        if not isinstance(value, str) or re.search(pattern, value):
            return []
        return self._say(where, f"{_shown(value)} does not match {pattern}")

    def _bound(self, value, where, wrong, words):
        return self._say(where, f"{_shown(value)} is {words}") if wrong else []

    def _minimum(self, bound, value, where, _):
        return self._bound(value, where, _is_number(value) and value < bound, f"below {bound}")

    def _maximum(self, bound, value, where, _):
        return self._bound(value, where, _is_number(value) and value > bound, f"above {bound}")

    def _min_length(self, bound, value, where, _):
        return self._bound(value, where, isinstance(value, str) and len(value) < bound, f"shorter than {bound}")

    def _max_length(self, bound, value, where, _):
        return self._bound(value, where, isinstance(value, str) and len(value) > bound, f"longer than {bound}")

    def _min_items(self, bound, value, where, _):
        return self._bound(value, where, isinstance(value, list) and len(value) < bound, f"of fewer than {bound} items")

    def _max_items(self, bound, value, where, _):
        return self._bound(value, where, isinstance(value, list) and len(value) > bound, f"of more than {bound} items")

    def _items(self, schema, value, where, _):
        if not isinstance(value, list):
            return []
        return [e for i, item in enumerate(value) for e in self.errors(schema, item, _pointer(where, i))]

    def _properties(self, properties, value, where, _):
        if not isinstance(value, dict):
            return []
        return [e for key, schema in properties.items() if key in value
                for e in self.errors(schema, value[key], _pointer(where, key))]

    def _required(self, names, value, where, _):
        if not isinstance(value, dict):
            return []
        return [e for name in names if name not in value for e in self._say(where, f"'{name}' is missing")]

    def _additional(self, schema, value, where, parent):
        if not isinstance(value, dict):
            return []
        extra = [key for key in value if key not in parent.get("properties", {})]
        if schema is False:
            return [e for key in extra for e in self._say(_pointer(where, key), "is not in the schema")]
        return [e for key in extra for e in self.errors(schema, value[key], _pointer(where, key))]

    def _all_of(self, schemas, value, where, _):
        return [e for schema in schemas for e in self.errors(schema, value, where)]

    def _fits(self, schemas, value, where):
        answers = [self.errors(schema, value, where) for schema in schemas]
        # The schema that came nearest tells most.
        return sum(not a for a in answers), min(answers, key=len)

    def _any_of(self, schemas, value, where, _):
        fits, nearest = self._fits(schemas, value, where)
        return [] if fits else self._say(where, f"fits none of {len(schemas)} schemas; nearest: {'; '.join(nearest)}")

    def _one_of(self, schemas, value, where, _):
        fits, nearest = self._fits(schemas, value, where)
        if fits > 1:
            return self._say(where, f"fits {fits} schemas; expected one")
        return [] if fits else self._say(where, f"fits none of {len(schemas)} schemas; nearest: {'; '.join(nearest)}")


def _events_of_sse(text):
    """(event, data) of each event; comments and other fields are passed over, as the format asks."""
    for block in re.split(r"\r?\n\r?\n", text):
        event, data = "message", []
        for line in block.splitlines():
            name, _, rest = line.partition(":")
            rest = rest[1:] if rest.startswith(" ") else rest
            if name == "event":
                event = rest
            elif name == "data":
                data.append(rest)
        if data:
            yield event, "\n".join(data)


class Contract:
    """The file, and the check of one exchange against it."""

    def __init__(self, path=DEFAULT):
        self.document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.schemas = Schemas(self.document)

    def route(self, path):
        """The pattern that a path belongs to, and its parameters; None when there is none."""
        path = path.split("?")[0]
        for pattern in sorted(self.document["paths"], key=lambda p: p.count("{")):
            names = re.findall(r"{(\w+)}", pattern)
            matched = re.fullmatch(re.sub(r"\\{\w+\\}", "([^/]+)", re.escape(pattern)), path)
            if matched:
                return pattern, dict(zip(names, matched.groups()))
        return None

    def operation(self, method, path):
        found = self.route(path)
        node = self.document["paths"][found[0]].get(method.lower()) if found else None
        return node and (node, self.document["paths"][found[0]], found[1])

    def check(self, method, path, request, status, headers, body, valid_request=None):
        """Raises Mismatch unless the answer, and a request that was not refused as bad, fit the file.

        `request` and `body` are bytes, text or None; `headers` a mapping of the answer's. `valid_request` overrides
        whether the request must fit: by default when the answer is a success.
        """
        operation = self.operation(method, path)
        if not operation:
            if status in (404, 405, 401, 403, 421) or status >= 500:
                return self._raise(self._check_problem(status, headers, body))
            raise Mismatch(f"{method} {path} is not in the file, and was answered with {status}")
        found = self._check_answer(operation[0], status, headers, body)
        if valid_request if valid_request is not None else status < 300:
            found += self._check_request(operation, request)
        self._raise(found, f"{method} {path} -> {status}")

    @staticmethod
    def _raise(found, what=""):
        if found:
            raise Mismatch(what + "\n  " + "\n  ".join(found))

    def _check_problem(self, status, headers, body):
        return self._check_content(self.document["components"]["responses"]["Other"]["content"], status, headers, body)

    def _check_request(self, operation, request):
        node, shared, values = operation
        found = []
        for parameter in map(self.schemas.resolve, shared.get("parameters", []) + node.get("parameters", [])):
            if parameter["in"] == "path":
                found += self.schemas.errors(parameter["schema"], values[parameter["name"]], f"path {parameter['name']}")
        if "requestBody" not in node:
            return found + (["a body was sent that the file does not have"] if request else [])
        try:
            value = json.loads(request or "")
        except ValueError as error:
            return found + [f"the request is not JSON: {error}"]
        return found + self.schemas.errors(node["requestBody"]["content"]["application/json"]["schema"], value)

    def _check_answer(self, node, status, headers, body):
        responses = node["responses"]
        response = self.schemas.resolve(responses.get(str(status)) or (responses.get("default") if status >= 400 else None))
        if response is None:
            return [f"status {status} is not in the file ({', '.join(responses)})"]
        low = {name.lower(): value for name, value in headers.items()}
        found = []
        for name, header in response.get("headers", {}).items():
            if name.lower() not in low:
                found.append(f"the header {name} is missing")
            elif header["schema"].get("type") == "integer" and not re.fullmatch(r"\d+", low[name.lower()]):
                found.append(f"the header {name} is {low[name.lower()]!r}; expected a whole number")
        if "content" not in response:
            return found + (["a body came that the file does not have"] if body else [])
        return found + self._check_content(response["content"], status, headers, body)

    def _check_content(self, content, status, headers, body):
        given = next((v for k, v in headers.items() if k.lower() == "content-type"), "")
        media = given.split(";")[0].strip().lower()
        if media not in content:
            return [f"Content-Type is {given!r}; expected {' or '.join(content)}"]
        try:
            text = body.decode("utf-8") if isinstance(body, bytes) else body or ""
        except UnicodeDecodeError as error:
            return [f"the answer is not UTF-8: {error}"]
        if "x-item-schema" in content[media]:
            return self._check_stream(content[media]["x-item-schema"], media, text)
        if not media.endswith("json"):
            return self.schemas.errors(content[media]["schema"], text)
        try:
            value = json.loads(text)
        except ValueError as error:
            return [f"the answer is not JSON: {error}"]
        found = self.schemas.errors(content[media]["schema"], value)
        if media == "application/problem+json" and isinstance(value, dict) and value.get("status") != status:
            found.append(f"/status: {value.get('status')} is not the answer's {status}")
        return found

    def _check_stream(self, schema, media, text):
        lines = _events_of_sse(text) if media == "text/event-stream" else ((None, line) for line in text.splitlines() if line)
        found, events = [], []
        for number, (name, line) in enumerate(lines):
            try:
                event = json.loads(line)
            except ValueError as error:
                return found + [f"event {number} is not JSON: {error}"]
            found += self.schemas.errors(schema, event, f"event {number}")
            kind = event.get("type") if isinstance(event, dict) else None
            if name is not None and name != kind:
                found.append(f"event {number}: `event: {name}` has type {kind!r}")
            events.append(kind)
        if not events or events[-1] != "result":
            found.append(f"the stream ends with {events[-1] if events else 'nothing'}; expected result")
        return found


def main():
    """openapi_check.py SCHEMA < value.json: checks standard input against one of the file's schemas."""
    contract = Contract()
    found = contract.schemas.errors({"$ref": f"#/components/schemas/{sys.argv[1]}"}, json.load(sys.stdin))
    print("\n".join(found) or "fits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
