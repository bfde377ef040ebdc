// An agent of one's own: the model through @anthropic-ai/sdk, the tools through @modelcontextprotocol/sdk.
// Proctor gives it PROCTOR_GATEWAY and PROCTOR_TOKEN, and the ANTHROPIC_… variables that the SDK looks for by itself.
import Anthropic from "@anthropic-ai/sdk";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const gateway = process.env.PROCTOR_GATEWAY;
const headers = { Authorization: `Bearer ${process.env.PROCTOR_TOKEN}` };

const brief = await (await fetch(`${gateway}/brief`, { headers })).json();
const tools = new Client({ name: "agent", version: "1.0.0" });
await tools.connect(new StreamableHTTPClientTransport(new URL(`${gateway}/mcp`), { requestInit: { headers } }));
const answer = await investigate();
await tools.close();
if (answer) {
  const sent = await fetch(`${gateway}/answer`, { method: "PUT", headers, body: answer });
  if (!sent.ok) throw new Error(`the answer was refused: ${await sent.text()}`);
}
process.exit(0);

// Let the model call tools until it ends its turn; return the last that it said.
async function investigate() {
  const model = new Anthropic();
  const offered = (await tools.listTools()).tools.map((tool) => ({
    name: tool.name,
    description: tool.description ?? "",
    input_schema: tool.inputSchema,
  }));
  const messages = [{ role: "user", content: brief.prompt }];
  let said = "";
  for (;;) {
    let reply;
    try {
      reply = await model.messages
        .stream({ model: brief.model, system: brief.system, messages, tools: offered, max_tokens: 8192 })
        .finalMessage();
    } catch (error) {
      if (error instanceof Anthropic.RateLimitError) return said; // a budget is used up: what there is counts
      throw error;
    }
    said = reply.content.filter((block) => block.type === "text").map((block) => block.text).join("\n") || said;
    const calls = reply.content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) return said;
    const results = [];
    for (const call of calls) {
      results.push(tell(call.id, await tools.callTool({ name: call.name, arguments: call.input })));
    }
    messages.push({ role: "assistant", content: reply.content }, { role: "user", content: results });
  }
}

// Say in the words of the Messages API what a tool returned.
function tell(call, result) {
  const content = result.content.map((block) => ({
    type: "text",
    text: block.type === "text" ? block.text : JSON.stringify(block),
  }));
  return { type: "tool_result", tool_use_id: call, content, is_error: Boolean(result.isError) };
}
