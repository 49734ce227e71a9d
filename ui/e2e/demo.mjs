// Fills a haft server with a small demo installation: tools of several types, calls, an approval, a rule.
// Usage: HAFT_URL=… HAFT_TOKEN=… node e2e/demo.mjs
const url = process.env.HAFT_URL ?? 'http://127.0.0.1:18901';

// What the agent answers: its model is a script.
const SCRIPT = `turns:
  - when: {user: 'orders of (?<customer>[\\w-]+)'}
    reasoning: The tool for orders knows the latest ones of a customer.
    text: I look at the latest orders.
    calls: [{tool: orders, arguments: {customer: "{{match.customer}}", limit: 3}}]
  - when: {tool: orders}
    text: |-
      **Three orders**, one of them still open:

      | order | total | state |
      | --- | ---: | --- |
      | 4200 | 19.90 | open |
      | 4201 | 39.80 | sent |
      | 4202 | 59.70 | paid |
  - when: {user: 'deploy (?<branch>[\\w/.-]*\\w)'}
    text: A person has to agree to that.
    calls: [{tool: deploy, arguments: {branch: "{{match.branch}}"}}]
  - when: {tool: deploy}
    text: "The tool says: {{result}}"
  - text: Ask me for the orders of a customer.
`;

export async function demo(base, token) {
  const send = async (method, path, body, type = 'application/json', as = token) => {
    const response = await fetch(`${base}/api${path}`, { method, headers: { Authorization: `Bearer ${as}`, 'Content-Type': type }, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body) });
    return { status: response.status, body: await response.json().catch(() => undefined) };
  };
  const yaml = (text) => send('POST', '/tools', text, 'application/yaml');
  await yaml('name: greet\ndescription: Greets a person by name\ntags: [demo, text]\nparams:\n  - {name: who, type: string, required: true, description: Who to greet}\n  - {name: loud, type: boolean, description: In capital letters}\nimplementation: {type: script, runtime: bash, body: "if [ \\"$loud\\" = true ]; then echo \\"HELLO, ${who^^}\\"; else echo \\"Hello, $who\\"; fi"}\n');
  await yaml('name: orders\ndescription: Lists the latest orders of a customer\ntags: [shop, read-only]\nparams:\n  - {name: customer, type: string, required: true, description: Number of the customer}\n  - {name: limit, type: integer, default: 5, minimum: 1, maximum: 50}\nexecution: {is_pure: true}\nimplementation: {type: script, runtime: python, body: "import json, os\\nargs = json.loads(os.environ[\'HAFT_ARGS\'])\\nprint(json.dumps([{\'order\': 4200 + i, \'customer\': args[\'customer\'], \'total\': round(19.9 * (i + 1), 2), \'state\': [\'open\', \'sent\', \'paid\'][i % 3]} for i in range(int(args.get(\'limit\', 5)))]))\\n"}\n');
  await yaml('name: weather-check\ndescription: Current weather for a city\ntags: [weather, web]\nparams: [{name: city, type: string, required: true, description: Name of the city}]\nimplementation: {type: http, method: GET, url: "https://wttr.in/{{city}}", query: {format: j1}}\n');
  await yaml('name: deploy\ndescription: Deploys a branch to production\ntags: [ops]\nrequires_confirmation: true\nparams: [{name: branch, type: string, required: true, description: Branch or tag}]\nimplementation: {type: exec, command: "echo deployed {{branch}}"}\n');
  await yaml('name: fetch-report\ndescription: Downloads the nightly report\nparams: []\nimplementation: {type: script, runtime: bash, body: "curl -s https://example.com/report | head -5"}\n');
  await yaml('name: count-slowly\ndescription: Counts to a number, one line per step\nparams: [{name: to, type: integer, required: true, default: 5, description: How far to count}]\nimplementation: {type: exec, command: "for i in $(seq 1 {{to}}); do echo -e \\"\\\\033[32mstep $i\\\\033[0m\\"; sleep 0.4; done"}\n');
  await send('POST', '/tools/greet/publish');
  await send('POST', '/tools/orders/publish');
  const agent = (await send('POST', '/tokens', { name: 'support-agent', role: 'caller' })).body?.data?.token ?? token;
  const call = (tool, args, as = agent) => send('POST', `/tools/${tool}/invoke`, { args }, 'application/json', as);
  for (const who of ['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald']) await call('greet', { who });
  for (let index = 0; index < 14; index += 1) await call('orders', { customer: `C-${1000 + index}`, limit: (index % 7) + 1 });
  await call('orders', { customer: 7 });
  await call('datetime_utils', { operation: 'now' });
  await call('weather-check', { city: 'Berlin' });
  await call('fetch-report', {});
  await call('deploy', { branch: 'release/2.4' });
  await call('deploy', { branch: 'main' });
  await send('PUT', '/policy', { rules: [
    { name: 'large-limits', match: { tools: ['orders'] }, when: 'has(args.limit) && args.limit > 40', effect: 'approve', reason: 'long lists need a second person', examples: [{ tool: 'orders', args: { limit: 45 }, expect: 'match' }] },
    { name: 'no-shell-for-agents', match: { tools: ['builtin:bash', 'builtin:exec'], roles: ['caller'] }, effect: 'deny', reason: 'agents may not run shell commands' },
  ] });
  await send('POST', '/agents', { slug: 'order-helper', name: 'Order helper', description: 'Answers questions about orders', model: { name: 'scripted', script: SCRIPT }, instructions: 'You help {{customer}}. Be brief.', variables: { customer: 'the caller' }, tools: ['user-created:orders', 'user-created:greet', 'user-created:deploy'] });
  const chat = (await send('POST', '/chats', { agent: 'order-helper' })).body?.data?.id;
  await send('POST', `/chats/${chat}/messages`, { content: 'What are the latest orders of C-1007?' });
  const run = (await send('POST', `/chats/${chat}/messages`, { content: 'Please deploy release/2.5.' })).body?.data?.run?.id;
  await send('POST', '/pipelines', { slug: 'handbook', name: 'Handbook', description: 'Rules of the shop' });
  await send('POST', '/pipelines/handbook/documents', { name: 'returns.md', text: '# Returns\n\nGoods can be returned within thirty days.\n', metadata: { team: 'shop' } });
  await send('POST', '/code-artifacts', { slug: 'word-count', name: 'Word count', description: 'Counts the words of a text', runtime: 'bash', source: 'echo "$text" | wc -w\n', inputs: [{ name: 'text', type: 'string', required: true, description: 'What to count' }] });
  await send('PUT', '/credentials/WEATHER_KEY', { value: 'not-a-real-key' });
  return { agent, chat, run };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await demo(url, process.env.HAFT_TOKEN);
}
