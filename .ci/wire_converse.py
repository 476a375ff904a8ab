#!/usr/bin/env python3
"""Judges Converse bodies by the service model that comes with botocore, and by rules beside it.

Each file holds one body a line. The model of the service knows names, kinds, lengths and which
unions have one member; patterns, enums and what several messages say together are looked at here.
"""

import base64
import json
import re
import sys

import botocore.session
from botocore.validate import ParamValidator

UNTOLD = "anthropic.claude-opus-4-6-v1:0"


def bytes_of(value, shape):
    """The value with its blobs as bytes, as the SDK takes them. What does not fit stays."""
    if shape.type_name == "structure" and isinstance(value, dict):
        if getattr(shape, "is_document_type", False):
            return value
        members = shape.members
        return {k: bytes_of(v, members[k]) if k in members else v for k, v in value.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [bytes_of(item, shape.member) for item in value]
    if shape.type_name == "map" and isinstance(value, dict):
        return {k: bytes_of(v, shape.value) for k, v in value.items()}
    if shape.type_name == "blob" and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    return value


def words(value, shape, path, found):
    """Collects what the validator does not look at: enums, patterns and unknown fields."""
    if shape.type_name == "structure" and isinstance(value, dict):
        if getattr(shape, "is_document_type", False):
            return
        for key, item in value.items():
            if key in shape.members:
                words(item, shape.members[key], f"{path}.{key}", found)
            else:
                found.append(f"{path}: no field {key}")
    elif shape.type_name == "list" and isinstance(value, list):
        for index, item in enumerate(value):
            words(item, shape.member, f"{path}[{index}]", found)
    elif shape.type_name == "string" and isinstance(value, str):
        if shape.enum and value not in shape.enum:
            found.append(f"{path}: {value!r} is none of {shape.enum}")
        pattern = shape.metadata.get("pattern")
        if pattern and not re.fullmatch(pattern, value):
            found.append(f"{path}: {value!r} does not match {pattern}")
        longest = shape.metadata.get("max")
        if longest is not None and len(value) > longest:
            found.append(f"{path}: longer than {longest}")


def spoken(body):
    """Rules on what messages say together."""
    messages = body.get("messages", [])
    if not messages:
        yield "there is no message"
        return
    claude = any(word in body.get("modelId", "") for word in ("claude", "qwen"))
    if messages[0]["role"] != "user" and not claude:
        yield "the first message is not the user's"
    open_ids, has_tools, points = [], False, 0
    for index, message in enumerate(messages):
        at, blocks = f"messages[{index}]", message["content"]
        if index and message["role"] == messages[index - 1]["role"]:
            yield f"{at}: roles do not alternate"
        if not blocks:
            yield f"{at}: no content"
        results = [block["toolResult"]["toolUseId"] for block in blocks
                   if "toolResult" in block and message["role"] == "user"]
        if message["role"] == "user":
            if sorted(results) != sorted(open_ids):
                yield f"{at}: results {results} for calls {open_ids}"
            others = [n for n, b in enumerate(blocks) if not {"toolResult", "cachePoint"} & set(b)]
            last = max((n for n, b in enumerate(blocks) if "toolResult" in b), default=-1)
            if others and others[0] < last:
                yield f"{at}: results behind other blocks"
            open_ids = []
        if message["role"] == "assistant":
            if open_ids:
                yield f"{at}: calls {open_ids} are open"
            open_ids = [block["toolUse"]["toolUseId"] for block in blocks
                        if "toolUse" in block and "type" not in block["toolUse"]]
        before = None
        for number, block in enumerate(blocks):
            key = next(iter(block))
            has_tools |= key in ("toolUse", "toolResult")
            nested = block["toolResult"]["content"] if key == "toolResult" else [block]
            if any(not item["text"].strip() for item in nested if "text" in item):
                yield f"{at}.content[{number}]: blank text"
            if key == "toolUse" and not isinstance(block[key]["input"], dict):
                yield f"{at}.content[{number}]: input is no object"
            if key == "reasoningContent" and message["role"] != "assistant":
                yield f"{at}.content[{number}]: reasoning of another than the assistant"
            if key == "cachePoint":
                points += 1
                if before in (None, "document", "video", "cachePoint", "reasoningContent"):
                    yield f"{at}.content[{number}]: cache point behind {before}"
            if key == "document":
                name = block[key]["name"]
                if not re.fullmatch(r"[A-Za-z0-9\-()\[\]]+( [A-Za-z0-9\-()\[\]]+)*", name):
                    yield f"{at}.content[{number}]: document name {name!r}"
            before = key
        keys = {next(iter(block)) for block in blocks}
        if "document" in keys and "text" not in keys:
            yield f"{at}: a document without text"
    if open_ids:
        yield f"calls {open_ids} are open at the end"
    config = body.get("toolConfig") or {}
    if has_tools and not config.get("tools"):
        yield "tool blocks without toolConfig"
    points += sum("cachePoint" in item for item in body.get("system", []) + config.get("tools", []))
    if points > 4:
        yield f"{points} cache points"


def main(paths):
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model("Converse").input_shape
    bodies, failed = 0, 0
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                body = json.loads(line)
                bodies += 1
                named = {"modelId": UNTOLD, **body}
                faults = []
                try:
                    report = ParamValidator().validate(bytes_of(named, shape), shape)
                    if report.has_errors():
                        faults.append(report.generate_report())
                except ValueError as error:
                    faults.append(f"no base64: {error}")
                words(named, shape, "body", faults)
                if not faults:
                    faults.extend(spoken(body))
                for fault in faults:
                    print(f"{path}:{number}: {fault}")
                failed += bool(faults)
    print(f"converse: {bodies} bodies, {failed} refused")
    return 1 if failed or not bodies else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
