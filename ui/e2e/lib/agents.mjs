// Agents whose model is a script: what they answer is known, and no key is needed.

// The tools of the agents: a plain one, one that asks a person, one that writes a file.
const WEATHER = 'name: weather\ndescription: The weather in a city\nparams: [{name: city, type: string, required: true}]\nimplementation: {type: exec, command: "echo {{city}} has 21 degrees"}\n';
const RELEASE = 'name: release\ndescription: Releases a branch\nrequires_confirmation: true\nparams: [{name: branch, type: string, required: true}]\nimplementation: {type: exec, command: "echo released {{branch}}"}\n';
const REPORT = 'name: write-report\ndescription: Writes a report\nparams: []\nimplementation: {type: exec, command: "echo \'# Report\' > report.md && echo written"}\n';

const SCRIPT = `turns:
  - when: {user: 'weather in (?<city>\\w+)'}
    reasoning: A tool knows the weather.
    text: I look it up.
    calls: [{tool: weather, arguments: {city: "{{match.city}}"}}]
  - when: {tool: weather, failed: false}
    text: "**Answer:** {{result}}"
  - when: {user: 'release (?<branch>\\S+)'}
    calls: [{tool: release, arguments: {branch: "{{match.branch}}"}}]
  - when: {tool: release, failed: false}
    text: "Released: {{result}}"
  - when: {tool: release, failed: true}
    text: "Not released: {{result}}"
  - when: {user: 'report'}
    calls: [{tool: write-report, arguments: {}}]
  - when: {tool: write-report}
    text: The report is written.
  - when: {user: 'slowly'}
    text: "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
    pace: 400ms
  - when: {user: 'fail'}
    error: {kind: auth, message: the key was rejected}
  - when: {user: 'hostile'}
    text: "<img src=x onerror=alert(1)> <script>alert(1)</script> [link](javascript:alert(1)) **bold**"
  - text: "You said: {{user}}"
`;

/** Creates the tools and a published agent, once per server. */
export function agent(world, slug = 'helper') {
  world.agents ??= new Map();
  if (!world.agents.has(slug)) world.agents.set(slug, create(world.haft, slug));
  return world.agents.get(slug);
}

async function create(haft, slug) {
  for (const yaml of [WEATHER, RELEASE, REPORT]) {
    const name = /name: (\S+)/.exec(yaml)[1];
    await haft.api('POST', '/tools', yaml, { type: 'application/yaml', allow: [409] });
    await haft.api('POST', `/tools/${name}/publish`, undefined, { allow: [400, 409, 422] });
  }
  await haft.api('POST', '/agents', { slug, name: slug[0].toUpperCase() + slug.slice(1), description: 'Answers by a script', instructions: 'You help.', model: { name: 'scripted', script: SCRIPT }, tools: ['weather', 'release', 'write-report'] }, { allow: [409] });
  await haft.api('POST', `/agents/${slug}/publish`);
  return slug;
}

/** A chat with the agent, and a page that shows it. */
export async function openChat(world, { slug = 'helper', search = '', ...options } = {}) {
  await agent(world, slug);
  const chat = await world.haft.api('POST', '/chats', { agent: slug });
  const page = await world.open(`/chat/${chat.id}${search}`, options);
  await page.getByRole('textbox', { name: 'Message', exact: true }).waitFor();
  return { page, chat };
}

export async function say(page, text) {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(text);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
}
