"""Run the OpenAI Agents SDK offline with a scripted model and keep what its exporter would send.

    uv run --group samples python tests/data/traces/openai_agents/make_sample.py

Two sessions: one with parallel calls, a failing tool and a hand-off, one without any tool.
"""

import asyncio
import json
import sys
from pathlib import Path

from agents import Agent, RunConfig, Runner, function_tool, set_trace_processors
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.tracing.processor_interface import TracingExporter
from agents.tracing.processors import BatchTraceProcessor
from agents.usage import Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


class ToFile(TracingExporter):
    """Collects what the SDK exports, in its order."""

    def __init__(self):
        self.items = []

    def export(self, items):
        self.items += [item.export() for item in items]


class Scripted(Model):
    """Answers with the next prepared output."""

    def __init__(self, outputs):
        self.outputs = list(outputs)

    async def get_response(self, *_, **__):
        return ModelResponse(output=self.outputs.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


def call(name, arguments, number):
    return ResponseFunctionToolCall(
        type="function_call", call_id=f"call_{number}", name=name, arguments=json.dumps(arguments)
    )


def say(text):
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return [ResponseOutputMessage(id="msg", type="message", role="assistant", status="completed", content=content)]


@function_tool
async def find_order(order_id: str) -> str:
    """Find an order."""
    await asyncio.sleep(0.02)
    return f"order {order_id}: 2 items"


@function_tool
async def find_customer(name: str) -> str:
    """Find a customer."""
    await asyncio.sleep(0.02)
    return f"customer {name}"


@function_tool
def refund(order_id: str) -> str:
    """Refund an order; it always fails here."""
    raise RuntimeError(f"order {order_id} cannot be refunded")


@function_tool
def write_note(text: str) -> str:
    """Write a note."""
    return "noted"


async def main(path):
    exporter = ToFile()
    processor = BatchTraceProcessor(exporter)
    set_trace_processors([processor])
    clerk = Agent(
        name="Clerk",
        tools=[refund, write_note],
        model=Scripted(
            [[call("refund", {"order_id": "A1"}, 4)], [call("write_note", {"text": "later"}, 5)], say("Done.")]
        ),
    )
    desk = Agent(
        name="Desk",
        tools=[find_order, find_customer],
        handoffs=[clerk],
        model=Scripted(
            [
                [call("find_order", {"order_id": "A1"}, 1), call("find_customer", {"name": "Ada"}, 2)],
                [call("transfer_to_clerk", {}, 3)],
            ]
        ),
    )
    await Runner.run(desk, "Refund A1, please.", run_config=RunConfig(workflow_name="Support", group_id="chat-1"))
    talker = Agent(name="Talker", model=Scripted([say("Hello.")]))
    await Runner.run(talker, "Hi.", run_config=RunConfig(workflow_name="Small talk", group_id="chat-2"))
    processor.shutdown()
    with path.open("w") as file:
        for item in exporter.items:
            file.write(json.dumps(item) + "\n")
    path.with_name("body.json").write_text(json.dumps({"data": exporter.items}, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("trace.jsonl")))
