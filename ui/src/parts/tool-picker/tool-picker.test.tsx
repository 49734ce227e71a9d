import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, it } from 'vitest';
import { toolListQuery } from '@/api/queries';
import type { ToolSummary } from '@/api/types';
import { I18nProvider } from '@/i18n';
import { costQuery } from './cost';
import { ToolPicker } from './index';

const tool = (bundle: string, name: string, change: Partial<ToolSummary> = {}): ToolSummary => ({
  id: null, bundle, name, version: '1.0.0', display_name: name, description: '', tags: [], tool_type: 'custom', implementation_type: 'exec', policy: 'allow', status: 'published', enabled: true,
  built_in: false, ready: true, source: 'user', modified_at: '2026-01-31T12:00:00Z', callable: true, warning_count: 0, ...change,
});
const TOOLS = [tool('web', 'fetch'), tool('web', 'post'), tool('web', 'broken', { ready: false, callable: false })];

function Field({ start }: { start: string[] }) {
  const [value, setValue] = useState(start);
  return <ToolPicker label="Tools" emptyText="All tools" value={value} onChange={setValue} />;
}

function show(start: string[], language: string) {
  localStorage.setItem('haft.language', language);
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY, retry: false } } });
  queries.setQueryData(toolListQuery.queryKey, { pages: [{ tools: TOOLS, total: TOOLS.length, failed: 1, next: null }], pageParams: [null] });
  for (const list of [TOOLS, TOOLS.slice(0, 1)]) queries.setQueryData(costQuery(list).queryKey, 1234);
  return render(<MantineProvider><I18nProvider><QueryClientProvider client={queries}><Field start={start} /></QueryClientProvider></I18nProvider></MantineProvider>);
}

afterEach(() => { cleanup(); localStorage.clear(); });

it('sums up the selection with its cost, and clears it', () => {
  show(['web:*'], 'en');
  expect(screen.getByText('3 tools selected')).toBeTruthy();
  expect(screen.getByText('about 1,234 tokens')).toBeTruthy();
  expect(screen.getByText('1 cannot be called now')).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'Clear all' }));
  expect(screen.getByText('All tools')).toBeTruthy();
  expect(screen.queryByText('web:*')).toBeNull();
});

it('takes single entries away, and marks those that match nothing, in German', () => {
  show(['web:fetch', 'web:gone'], 'de');
  expect(screen.getByText('1 Tool ausgewählt')).toBeTruthy();
  expect(screen.getByTitle('Passt derzeit auf kein Tool').textContent).toBe('web:gone');
  fireEvent.click(screen.getByRole('button', { name: 'Entfernen web:fetch' }));
  expect(screen.queryByText('web:fetch')).toBeNull();
  expect(screen.getByText('0 Tools ausgewählt')).toBeTruthy();
});
