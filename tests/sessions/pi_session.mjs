// Opens and writes sessions with pi's own code. Orders come as JSON on stdin: [package, order].
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, order] = JSON.parse(readFileSync(0, "utf8"));
const load = (file) => import(pathToFileURL(`${folder}/dist/core/${file}`).href);
const { SessionManager } = await load("session-manager.js");
const { convertToLlm } = await load("messages.js");

const reply = (content, stopReason = "stop") => ({
  role: "assistant",
  content,
  api: "anthropic-messages",
  provider: "p",
  model: "m",
  usage: {
    input: 10, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 15,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  },
  stopReason,
  timestamp: 2,
});
const user = (content) => ({ role: "user", content, timestamp: 1 });
const text = (words) => ({ type: "text", text: words });

function describe(session) {
  const context = session.buildSessionContext();
  return {
    file: session.getSessionFile(),
    header: session.getHeader(),
    name: session.getSessionName() ?? "",
    entries: session.getEntries(),
    path: session.getBranch().map((entry) => entry.id),
    leaf: session.getLeafId(),
    messages: context.messages,
    sent: convertToLlm(context.messages),
    model: context.model,
    thinkingLevel: context.thinkingLevel,
    labels: session.getEntries().filter((entry) => session.getLabel(entry.id)).map((entry) => entry.id),
    roots: session.getTree().length,
  };
}

function write(cwd, sessions) {
  const session = SessionManager.create(cwd, sessions);
  session.appendModelChange("p", "m");
  session.appendThinkingLevelChange("xhigh");
  const first = session.appendMessage(user("look \u2028 at it \u{1f600}"));
  const call = { type: "toolCall", id: "call_1", name: "read", arguments: { path: "a.py" } };
  const thought = { type: "thinking", thinking: "hm", thinkingSignature: "c2ln" };
  session.appendMessage(reply([thought, text("Reading."), call], "toolUse"));
  session.appendMessage({
    role: "toolResult", toolCallId: "call_1", toolName: "read", isError: false, timestamp: 3,
    content: [text("one"), { type: "image", data: order.image, mimeType: "image/png" }],
    details: { diff: "+a" },
  });
  const fork = session.appendMessage(reply([text("Fine.")]));
  session.appendMessage(user("this way"));
  session.appendMessage(reply([text("Astray.")], "aborted"));
  session.branchWithSummary(fork, "It went astray.", { readFiles: ["a.py"] }, false);
  const kept = session.appendMessage(user("the other way"));
  session.appendMessage({
    role: "bashExecution", command: "ls", output: "a", exitCode: undefined, cancelled: true,
    truncated: false, timestamp: 4,
  });
  session.appendMessage({
    role: "bashExecution", command: "env", output: "secret", exitCode: 0, cancelled: false,
    truncated: false, excludeFromContext: true, timestamp: 4,
  });
  session.appendCustomEntry("state", { n: [1, null] });
  session.appendCustomMessageEntry("note", "a note", true, { by: "x" });
  session.appendMessage(reply([text("Done.")]));
  session.appendCompaction("What was done.", kept, 900, { readFiles: ["a.py"], modifiedFiles: [] });
  session.appendLabelChange(first, "start");
  session.appendSessionInfo("My pi work");
  session.appendMessage(user("go on"));
  session.appendMessage(reply([text("Going on.")]));
  return session;
}

function extend(file) {
  const session = SessionManager.open(file);
  session.appendMessage(user("from pi"));
  session.appendMessage(reply([text("Hello.")]));
  return session;
}

const done = {
  open: () => describe(SessionManager.open(order.file)),
  extend: () => describe(extend(order.file)),
  write: () => describe(write(order.cwd, order.sessions)),
  list: () => SessionManager.list(order.cwd, order.sessions),
};
process.stdout.write(JSON.stringify(await done[order.do]()));
