"""Helm for the tests: answers one JSON request a line with one JSON line.

The package `helm_python` is Helm's own Go SDK; `cargo xtask setup` keeps it in the cache, and PYTHONPATH names it.
"""

import json
import sys

import helm_python as helm


def lint(chart, values, **_release):
    report = helm.lint(chart, values, strict=True, with_subcharts=True)
    return {"messages": [f"{m['path']}: {m['error']}" for m in report["messages"] if m["severity"] >= 2], "errors": report["errors"]}


def render(chart, values, name, namespace):
    with helm.Chart.load(chart) as loaded:
        loaded.validate_schema(values)
        return loaded.render(values, name=name, namespace=namespace)


for line in sys.stdin:
    request = json.loads(line)
    verb = {"lint": lint, "render": render}[request.pop("verb")]
    try:
        answer = {"ok": verb(**request)}
    except helm.HelmError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
