// Waits for the result of a call, as MCP Apps sends it, and then writes the page with its data.
const DATA = "__DATA__";
let isShown = false;
const send = (message) => window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const notify = (method, params) => send({ method, params });

// Older results have only text.
const valueOf = (result) => {
  if (result.structuredContent !== undefined) return result.structuredContent;
  const texts = (result.content ?? []).filter((block) => block.type === "text");
  const text = texts.map((block) => block.text).join("\n");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

const reportSize = () => {
  const { scrollWidth: width, scrollHeight: height } = document.documentElement;
  notify("ui/notifications/size-changed", { width, height });
};

// Opening the document removes all listeners.
const write = (html) => {
  document.open();
  document.write(html);
  document.close();
  window.addEventListener("message", receive);
  new ResizeObserver(reportSize).observe(document.documentElement);
};

const showText = (text) => {
  write("<!DOCTYPE html><pre id=\"text\" style=\"white-space: pre-wrap\"></pre>");
  document.getElementById("text").textContent = text;
};

const showResult = (result) => {
  if (result.isError) {
    showText((result.content ?? []).map((block) => block.text ?? "").join("\n"));
    return;
  }
  const meta = result._meta ?? {};
  window.__TOOL_DATA__ = DATA in meta ? meta[DATA] : valueOf(result);
  // The scripts of a page cannot run twice in one window: a page that is shown already gets an event.
  if (isShown) {
    window.dispatchEvent(new CustomEvent("tool-data", { detail: window.__TOOL_DATA__ }));
    return;
  }
  isShown = true;
  write(PAGE);
};

const receive = (event) => {
  const message = event.data;
  if (event.source !== window.parent || message?.jsonrpc !== "2.0") return;
  if (message.method === undefined) {
    if (message.id === 1 && message.result) notify("ui/notifications/initialized", {});
  } else if (message.method === "ui/notifications/tool-result") {
    showResult(message.params ?? {});
  } else if (message.method === "ui/notifications/tool-cancelled") {
    showText(message.params?.reason ?? "The call was cancelled.");
  } else if (message.id !== undefined) {
    const known = ["ping", "ui/resource-teardown"].includes(message.method);
    const error = { code: -32601, message: `${message.method} is not supported` };
    send(known ? { id: message.id, result: {} } : { id: message.id, error });
  }
};

window.addEventListener("message", receive);
send({
  id: 1,
  method: "ui/initialize",
  params: {
    appInfo: { name: "haft", version: "__VERSION__" },
    appCapabilities: { availableDisplayModes: ["inline"] },
    protocolVersion: "2026-01-26",
  },
});
