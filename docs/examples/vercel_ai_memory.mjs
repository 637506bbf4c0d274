// Long-term memory for Vercel's AI SDK (ai 6), by the HTTP API of a running `recollect serve`.
//
//   const model = wrapLanguageModel({ model: openai("gpt-5-mini"), middleware: recollectMemory({ namespace: userId, session: chatId }) });
//   await generateText({ model, prompt: "What is our cat called?" });
//
// Each request gets the memories for the user's last message, which is recorded, and so is the reply, streamed or not. When
// the memory fails or is late, the request goes on without it. Take the namespace from the login, never from what a user types.

export function recollectMemory({ namespace, session, url = "http://127.0.0.1:8787", token, timeoutMs = 5000 }) {
  const path = `${url}/v1/namespaces/${encodeURIComponent(namespace)}/messages`;
  const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };

  async function record(role, content, query = "") {
    if (!content) return {};
    try {
      const body = JSON.stringify({ session_id: session, messages: [{ role, content }] });
      const answer = await fetch(path + query, { method: "POST", headers, body, signal: AbortSignal.timeout(timeoutMs) });
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
      return await answer.json();
    } catch (error) {
      console.warn(`recollect: this request goes on without its memory: ${error}`);
      return {};
    }
  }

  const textOf = (content) => content.filter((part) => part.type === "text").map((part) => part.text).join("\n");

  return {
    specificationVersion: "v3",

    async transformParams({ params }) {
      const last = params.prompt.at(-1);
      // After a call of a tool the last message is its result: the memories of the turn are there already.
      if (last?.role !== "user") return params;
      const { retrieval } = await record("user", textOf(last.content), "?retrieve=true");
      if (!retrieval?.context) return params;
      const context = { role: "system", content: retrieval.context };
      return { ...params, prompt: [...params.prompt.slice(0, -1), context, last] };
    },

    async wrapGenerate({ doGenerate }) {
      const result = await doGenerate();
      await record("assistant", textOf(result.content));
      return result;
    },

    async wrapStream({ doStream }) {
      const { stream, ...rest } = await doStream();
      let reply = "";
      const recorder = new TransformStream({
        transform(part, controller) {
          if (part.type === "text-delta") reply += part.delta;
          controller.enqueue(part);
        },
        flush: () => record("assistant", reply).then(() => undefined),
      });
      return { ...rest, stream: stream.pipeThrough(recorder) };
    },
  };
}
