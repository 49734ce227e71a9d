/** Copy-ready configuration for the clients that connect to haft. */
export const CLIENTS = ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'openai', 'curl'] as const;
export type ClientName = (typeof CLIENTS)[number];
export const CLIENT_LABELS: Record<ClientName, string> = {
  'claude-code': 'Claude Code', 'claude-desktop': 'Claude Desktop', cursor: 'Cursor', vscode: 'VS Code', openai: 'OpenAI-style code', curl: 'curl',
};

export interface ClientSetup {
  /** Where the text goes: a file, or a shell. */
  place: string;
  text: string;
}

const json = (value: unknown) => JSON.stringify(value, null, 2);

export function clientSetup(client: ClientName, origin: string, token: string, bundle?: string): ClientSetup {
  const url = `${origin}/mcp${bundle ? `/bundles/${encodeURIComponent(bundle)}` : ''}`;
  const name = bundle ? `haft-${bundle}` : 'haft';
  const headers = { Authorization: `Bearer ${token}` };
  switch (client) {
    case 'claude-code':
      return { place: 'shell', text: `claude mcp add --transport http ${name} ${url} \\\n  --header "Authorization: Bearer ${token}"` };
    case 'claude-desktop':
      return { place: 'claude_desktop_config.json', text: json({ mcpServers: { [name]: { command: 'haft', args: ['mcp', '--server', origin, '--token', token, ...(bundle ? ['--bundle', bundle] : [])] } } }) };
    case 'cursor':
      return { place: '~/.cursor/mcp.json', text: json({ mcpServers: { [name]: { type: 'http', url, headers } } }) };
    case 'vscode':
      return { place: '.vscode/mcp.json', text: json({ servers: { [name]: { type: 'http', url, headers } } }) };
    case 'openai':
      return {
        place: 'Python',
        text: `import json, requests\nfrom openai import OpenAI\n\nHAFT = "${origin}/api"\nAUTH = {"Authorization": "Bearer ${token}"}\nclient = OpenAI()\ntools = requests.get(f"{HAFT}/tools/definitions/all?format=openai${bundle ? `&bundle=${encodeURIComponent(bundle)}` : ''}", headers=AUTH).json()["data"]\nmessages = [{"role": "user", "content": "What time is it?"}]\n\nwhile True:\n    reply = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools).choices[0].message\n    messages.append(reply)\n    if not reply.tool_calls:\n        break\n    for call in reply.tool_calls:\n        args = json.loads(call.function.arguments)\n        outcome = requests.post(f"{HAFT}/tools/{call.function.name}/invoke", headers=AUTH, json={"args": args}).json()\n        text = json.dumps(outcome["value"]) if outcome["ok"] else outcome["error"]["model_text"]\n        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})\nprint(reply.content)`,
      };
    case 'curl':
      return { place: 'shell', text: `curl -s ${origin}/api/tools/datetime_utils/invoke \\\n  -H "Authorization: Bearer ${token}" \\\n  -d '{"args": {"operation": "now"}}'` };
  }
}
