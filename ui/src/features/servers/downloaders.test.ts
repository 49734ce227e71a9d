import { expect, test } from 'vitest';
import { isDownloader, runsDownloader } from './downloaders';

test('package runners are recognised with and without a folder', () => {
  expect(['npx', ' uvx ', '/usr/bin/pipx'].map(isDownloader)).toEqual([true, true, true]);
  expect(['', 'npx-like', 'python3', '/opt/npx/server'].map(isDownloader)).toEqual([false, false, false, false]);
});

test('a pasted configuration names its commands', () => {
  expect(runsDownloader('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}')).toBe(true);
  expect(runsDownloader('{"mcpServers": {"npx": {"command": "python3", "args": ["npx"]}}}')).toBe(false);
});
