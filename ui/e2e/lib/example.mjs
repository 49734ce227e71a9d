// What the pages of toolsets and workspaces show: the two toolsets of the documentation, a workspace, and an empty one.
import { exampleFiles, install } from './package.mjs';
import { Workspace } from './workspace.mjs';

/** The toolset with an MCP server whose program does not exist: nothing is loaded from elsewhere. */
export function withMissingServer() {
  const files = exampleFiles('my-toolset');
  return { ...files, 'toolset.yaml': files['toolset.yaml'].replace('command: npx', 'command: no-such-program') };
}

export async function example(haft) {
  await install(haft, exampleFiles('app-builder'));
  await install(haft, withMissingServer());
  const demo = await Workspace.create(haft, 'demo');
  const empty = new Workspace(haft, 'empty');
  await empty.put('first.txt', 'first');
  await empty.request('DELETE', 'first.txt');
  return { demo, state: (await demo.states())[0].id };
}
