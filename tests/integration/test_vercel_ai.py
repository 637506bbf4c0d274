"""docs/examples/vercel_ai_memory.mjs in node, with the real `ai` package and a real server."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.server import serving

from recollect import Client

ROOT = Path(__file__).parents[2]
NODE = ROOT / "build" / "node"
SCRIPT = """
import { generateText, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { recollectMemory } from "MIDDLEWARE";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const finishReason = { unified: "stop" };
const textFor = (prompt) => (JSON.stringify(prompt).includes("cat called Biscuit") ? "Biscuit!" : "I do not know.");
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) =>
    ({ content: [{ type: "text", text: textFor(prompt) }], finishReason, usage, warnings: [] }),
  doStream: async ({ prompt }) => ({
    stream: simulateReadableStream({
      chunks: [
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: textFor(prompt) },
        { type: "text-end", id: "1" },
        { type: "finish", finishReason, usage },
      ],
    }),
  }),
});
const remembering = (session, url = "URL") =>
  wrapLanguageModel({ model, middleware: recollectMemory({ namespace: "hana", session, url }) });

await generateText({ model: remembering("s1"), prompt: "We adopted a cat called Biscuit." });
console.log((await generateText({ model: remembering("s2"), prompt: "What is our cat called?" })).text);
let streamed = "";
for await (const text of streamText({ model: remembering("s3"), prompt: "What is our cat called?" }).textStream)
  streamed += text;
console.log(streamed);
const lost = remembering("s4", "http://127.0.0.1:1");
console.log((await generateText({ model: lost, prompt: "What is our cat called?" })).text);
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs node and npm")
def test_a_wrapped_model_remembers_and_goes_on_without_its_memory(tmp_path: Path) -> None:
    if not (NODE / "node_modules" / "ai").exists():
        subprocess.run(["npm", "install", "--silent", "--prefix", NODE, "ai@6"], check=True)
    middleware = NODE / "vercel_ai_memory.mjs"
    shutil.copy(ROOT / "docs" / "examples" / "vercel_ai_memory.mjs", middleware)
    with serving(tmp_path) as server:
        script = NODE / "check.mjs"
        script.write_text(SCRIPT.replace("MIDDLEWARE", str(middleware)).replace("URL", server.base))
        done = subprocess.run(["node", script], capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.splitlines() == ["Biscuit!", "Biscuit!", "I do not know."], done.stderr
        assert "goes on without its memory" in done.stderr
        with Client(server.base) as client:
            said = [(item["role"], item["text"]) for item in client.list("hana", "episodes")["items"]]
    assert said.count(("assistant", "Biscuit!")) == 3
    assert said[0] == ("user", "We adopted a cat called Biscuit.")
