"""Run an Inspect evaluation offline with a scripted model, and keep its log as an archive and as JSON.

    uv run --group samples python tests/data/traces/inspect_eval/make_sample.py

Two samples, one of them right: parallel calls, a failing tool, and a sample without any call.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import convert_eval_logs
from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolCall, ToolError, tool


@tool
def look_up():
    async def execute(word: str) -> str:
        """Look a word up.

        Args:
            word: The word.
        """
        return f"{word}: a fruit"

    return execute


@tool
def count_letters():
    async def execute(word: str) -> int:
        """Count the letters of a word.

        Args:
            word: The word.
        """
        return len(word)

    return execute


@tool
def translate():
    async def execute(word: str) -> str:
        """Translate a word; it always fails here.

        Args:
            word: The word.
        """
        raise ToolError(f"no dictionary for {word}")

    return execute


def calls(*wanted):
    made = [
        ToolCall(id=f"call_{number}_{name}", function=name, arguments={"word": "pear"}, type="function")
        for number, name in enumerate(wanted)
    ]
    output = ModelOutput.from_message(ChatMessageAssistant(content="", tool_calls=made, source="generate"))
    output.choices[0].stop_reason = "tool_calls"
    return counted(output)


def say(text):
    return counted(ModelOutput.from_content("mockllm/model", text))


def counted(output):
    """Tell the usage, which would else be estimated with a vocabulary from the network."""
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def main(folder):
    model = get_model(
        "mockllm/model",
        custom_outputs=[
            calls("look_up", "count_letters"),
            calls("translate"),
            say("A pear is a fruit of 4 letters."),
            say("I do not know."),
        ],
    )
    task = Task(
        dataset=[
            Sample(id="pear", input="What is a pear?", target="fruit"),
            Sample(id="quince", input="What is a quince?", target="fruit"),
        ],
        solver=[use_tools(look_up(), count_letters(), translate()), generate()],
        scorer=includes(),
        name="fruit",
    )
    with tempfile.TemporaryDirectory() as logs:
        evaluate(task, model=model, log_dir=logs, display="none", max_samples=1, score=True)
        (log,) = Path(logs).glob("*.eval")
        shutil.copy(log, folder / "fruit.eval")
        convert_eval_logs(str(log), "json", str(Path(logs) / "json"))
        (text,) = (Path(logs) / "json").glob("*.json")
        (folder / "fruit.json").write_text(json.dumps(json.loads(text.read_text()), indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
