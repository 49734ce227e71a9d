import { MantineProvider } from '@mantine/core';
import { act, cleanup, render, screen } from '@testing-library/react';
import { Suspense, type ComponentType } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { connection } from '@/api/connection';
import { lazyPart, mayReload } from './lazy';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  connection.report('ok');
});

it('says that a part cannot be loaded while the server is gone, and loads it when the server is back', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  let isUp = false;
  const Part = lazyPart(() => (isUp ? Promise.resolve((() => <p>here it is</p>) as ComponentType) : Promise.reject(new TypeError('Failed to fetch dynamically imported module'))));
  await Part.preload();
  expect(connection.get()).toBe('lost');
  await act(async () => { render(<MantineProvider><Suspense fallback="loading"><Part /></Suspense></MantineProvider>); });
  expect(await screen.findByText('This part of the page could not be loaded')).toBeTruthy();
  isUp = true;
  await act(async () => connection.report('ok'));
  expect(await screen.findByText('here it is')).toBeTruthy();
});

it('reloads once, not in a circle', () => {
  const values = new Map<string, string>();
  const store = { getItem: (key: string) => values.get(key) ?? null, setItem: (key: string, value: string) => void values.set(key, value) };
  expect(mayReload(1_000_000, store)).toBe(true);
  expect(mayReload(1_000_500, store)).toBe(false);
  expect(mayReload(1_031_000, store)).toBe(true);
});
