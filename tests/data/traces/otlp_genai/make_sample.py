"""Run a Pydantic AI agent offline with a scripted model, and keep its OpenTelemetry GenAI spans as OTLP JSON lines.

    uv run --group samples python tests/data/traces/otlp_genai/make_sample.py

Two conversations: one with parallel calls, a failing tool and a second request, one without any tool. `sdk.jsonl`
holds the same spans as the Python SDK's own `to_json` writes them.
"""

import asyncio
import json
import sys
from pathlib import Path

from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings


def scripted(answers):
    left = list(answers)

    def answer(_messages, _info):
        return ModelResponse(parts=left.pop(0))

    return FunctionModel(answer, model_name="scripted")


def main(path):
    path.unlink(missing_ok=True)
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "weather-desk", "service.version": "1.4.0"}))
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(str(path))))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    settings = InstrumentationSettings(tracer_provider=provider)

    desk = Agent(
        scripted(
            [
                [ToolCallPart("find_city", {"name": "Rome"}), ToolCallPart("find_units", {"country": "IT"})],
                [ToolCallPart("get_forecast", {"city_id": "C77"})],
                [ToolCallPart("find_city", {"name": "Oslo"})],
                [TextPart("Oslo is C12.")],
                [TextPart("Hello.")],
            ]
        ),
        name="desk",
    )
    desk.instrument = settings

    @desk.tool_plain
    async def find_city(name: str) -> str:
        """Find a city."""
        await asyncio.sleep(0.02)
        return "C77" if name == "Rome" else "C12"

    @desk.tool_plain
    async def find_units(country: str) -> str:
        """Find the units of a country."""
        await asyncio.sleep(0.02)
        return f"metric ({country})"

    @desk.tool_plain
    def get_forecast(city_id: str) -> str:
        """Get a forecast; it always fails here."""
        raise RuntimeError(f"no station for {city_id}")

    for conversation, prompts in (("talk-1", ["Weather in Rome?", "And where is Oslo?"]), ("talk-2", ["Hi."])):
        for prompt in prompts:
            try:
                desk.run_sync(prompt, conversation_id=conversation)
            except RuntimeError as error:
                print(f"{conversation}: {error}")
    provider.shutdown()
    path.write_text("".join(without_traceback(line) for line in path.read_text().splitlines()))
    spans = [span.to_json(indent=None) for span in kept.get_finished_spans()]
    path.with_name("sdk.jsonl").write_text("".join(without_traceback(line) for line in spans))


def without_traceback(line):
    """Leave out the traceback of an exception: its lines name files of this machine."""
    value = json.loads(line)
    for event in [*value.get("events", []), *(event for span in otlp_spans(value) for event in span.get("events", []))]:
        if isinstance(event["attributes"], dict):
            event["attributes"].pop("exception.stacktrace", None)
        else:
            event["attributes"] = [item for item in event["attributes"] if item["key"] != "exception.stacktrace"]
    return json.dumps(value) + "\n"


def otlp_spans(value):
    return [
        span for group in value.get("resourceSpans", []) for scope in group["scopeSpans"] for span in scope["spans"]
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("spans.jsonl"))
