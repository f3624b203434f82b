"""LLaMA-Factory: its list of data sets, its converter, its rendering of calls and its parser."""

import json
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import SimpleNamespace

from datasets import load_dataset
from plain import expected, export, report


def main() -> None:
    # its module for sounds, of which there are none here, needs a wheel that takes CUDA
    sys.modules["torchaudio"] = module_from_spec(ModuleSpec("torchaudio", None))
    from llamafactory.data.converter import get_dataset_converter
    from llamafactory.data.formatter import FunctionFormatter, ToolFormatter
    from llamafactory.data.parser import get_dataset_list

    folder = export() / "sharegpt"
    [about] = get_dataset_list(["sharegpt"], str(folder))
    rows = load_dataset("json", data_files=str(folder / about.dataset_name), split="train")
    convert = get_dataset_converter(about.formatting, about, SimpleNamespace(media_dir=""))
    calls_as_qwen = FunctionFormatter(slots=["{{content}}<|im_end|>\n"], tool_format="qwen")
    tools_as_qwen = ToolFormatter(tool_format="qwen")

    calls = 0
    for row, ours in zip(rows, expected(), strict=True):
        read = convert(row)
        spoken = read["_prompt"] + read["_response"]
        assert spoken, "LLaMA-Factory skips a row that it finds abnormal"
        assert read["_system"] == ours["messages"][0]["content"]
        assert json.loads(read["_tools"]) == ours["tools"]
        assistant = [m for m in ours["messages"] if m["role"] == "assistant"]
        theirs = [m for m in spoken if m["role"] in ("assistant", "function")]
        for message, turn in zip(assistant, theirs, strict=True):
            wanted = [
                (c["function"]["name"], c["function"]["arguments"])
                for c in message.get("tool_calls") or ()
            ]
            if turn["role"] == "assistant":
                assert not wanted
                assert turn["content"] == message["content"]
                continue
            [text] = calls_as_qwen.apply(
                content=turn["content"],
                thought_words=None,
                tool_call_words=("<tool_call>", "</tool_call>"),
            )
            assert text.startswith(message["content"])
            made = tools_as_qwen.extract(text.removesuffix("<|im_end|>\n"))
            assert [(one.name, json.loads(one.arguments)) for one in made] == wanted
            calls += len(wanted)
    report("llamafactory", "sharegpt", rows=len(rows), calls=calls)


main()
