"""Run a LangGraph agent offline with a scripted model, and keep the runs that the LangSmith client sends.

    uv run --group samples python tests/data/traces/langsmith/make_sample.py

A server on this machine takes the client's requests; each run is what it posted, with what it patched later. Two
threads: one with parallel calls and a failing tool, one without any tool.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langsmith import Client

RUNS: dict[str, dict] = {}


class Collector(BaseHTTPRequestHandler):
    """Takes POST /runs and PATCH /runs/<id>."""

    def _take(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        run_id = body.get("id") or self.path.rsplit("/", 1)[-1]
        run = RUNS.setdefault(run_id, {"id": run_id})
        run.update({key: value for key, value in body.items() if value is not None})
        self.send_response(202)
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_PATCH = _take

    def log_message(self, *_):
        """Say nothing."""


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
    tools = ToolNode([search_hotels, search_flights, book_hotel], handle_tool_errors=True)
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "agent")
    return graph.compile()


def main(path):
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Client(
        api_url=f"http://127.0.0.1:{server.server_port}",
        api_key="none",
        auto_batch_tracing=False,
        omit_traced_runtime_info=True,
        info={"version": "0"},
    )
    tracer = LangChainTracer(client=client, project_name="travel")
    travel = agent(
        [
            AIMessage("", tool_calls=[call("search_hotels", 1, city="Rome"), call("search_flights", 2, city="Rome")]),
            AIMessage("", tool_calls=[call("book_hotel", 3, hotel_id="H-Rome")]),
            AIMessage("The hotel is fully booked."),
        ]
    )
    about = {"thread_id": "thread-1", "user_id": "user-7", "revision_id": "r42"}
    travel.invoke({"messages": [("user", "A trip to Rome, please.")]}, {"callbacks": [tracer], "metadata": about})
    about = {"thread_id": "thread-2", "user_id": "user-8", "revision_id": "r42"}
    talk = agent([AIMessage("Hello.")])
    talk.invoke({"messages": [("user", "Hi.")]}, {"callbacks": [tracer], "metadata": about})
    tracer.wait_for_futures()
    server.shutdown()
    with path.open("w") as file:
        for run in RUNS.values():
            run["extra"] = {"metadata": run.get("extra", {}).get("metadata", {})}
            if run.get("error"):
                run["error"] = run["error"].split("Traceback")[0]  # its lines name files of this machine
            file.write(json.dumps(run) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("runs.jsonl"))
