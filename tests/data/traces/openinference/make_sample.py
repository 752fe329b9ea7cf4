"""Run a LangGraph agent offline with a scripted model, and keep its OpenInference spans as OTLP JSON lines.

    uv run --group samples python tests/data/traces/openinference/make_sample.py

Two sessions: one with parallel calls and a failing tool, one without any tool.
"""

import json
import sys
from pathlib import Path

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


@tool
def search_hotels(city: str) -> str:
    """Search hotels in a city."""
    return json.dumps({"hotel_id": f"H-{city}", "nights": 3})


@tool
def search_flights(city: str) -> str:
    """Search flights to a city."""
    return json.dumps({"flight_id": f"F-{city}"})


@tool
def book_hotel(hotel_id: str) -> str:
    """Book a hotel; it always fails here."""
    raise RuntimeError(f"{hotel_id} is fully booked")


def call(name, number, **arguments):
    return {"name": name, "args": arguments, "id": f"call_{number}", "type": "tool_call"}


def agent(answers):
    model = GenericFakeChatModel(messages=iter(answers))
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([search_hotels, search_flights, book_hotel], handle_tool_errors=True))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "agent")
    return graph.compile()


def main(path):
    path.unlink(missing_ok=True)
    provider = TracerProvider(resource=Resource({"service.name": "travel-desk"}))
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(str(path))))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    travel = agent(
        [
            AIMessage("", tool_calls=[call("search_hotels", 1, city="Rome"), call("search_flights", 2, city="Rome")]),
            AIMessage("", tool_calls=[call("book_hotel", 3, hotel_id="H-Rome")]),
            AIMessage("The hotel is fully booked."),
        ]
    )
    with using_attributes(session_id="chat-1", user_id="user-7"):
        travel.invoke({"messages": [("user", "A trip to Rome, please.")]})
    with using_attributes(session_id="chat-2", user_id="user-8"):
        agent([AIMessage("Hello.")]).invoke({"messages": [("user", "Hi.")]})
    provider.shutdown()
    path.write_text("".join(without_traceback(line) for line in path.read_text().splitlines()))


def without_traceback(line):
    """Leave out the traceback of an exception: its lines name files of this machine."""
    value = json.loads(line)
    for group in value["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for event in span.get("events", []):
                    event["attributes"] = [
                        item for item in event["attributes"] if item["key"] != "exception.stacktrace"
                    ]
                if span.get("status", {}).get("message"):
                    span["status"]["message"] = span["status"]["message"].split("Traceback")[0]
    return json.dumps(value) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("spans.jsonl"))
