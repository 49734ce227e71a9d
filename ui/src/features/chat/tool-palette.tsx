/** The `+` of the composer: finds a tool, asks for its arguments, runs it in this chat. */
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue, useLocalStorage } from '@mantine/hooks';
import { IconArrowLeft, IconPlayerPlay, IconPlayerStop, IconSearch } from '@tabler/icons-react';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { chatKeys, chats } from '@/api/chats';
import { client, data } from '@/api/client';
import { runTool, type RunProgress, type RunResult } from '@/api/invoke';
import { keys } from '@/api/keys';
import { toolQuery, toolRef } from '@/api/queries';
import type { JsonObject, Tool } from '@/api/types';
import { workspaceKeys } from '@/api/workspaces';
import { useT } from '@/i18n';
import { ErrorPanel, Highlight, Mono } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import { defaults, type Schema } from '@/parts/schema';
import { ArgumentsInput } from '@/parts/schema-form';
import { readViolations } from '@/parts/schema-form/errors';
import { StatusBadge } from '@/parts/status';
import { OutputView } from '@/parts/text-view';
import classes from './chat.module.css';
import { toolMessage } from './tool-message';

const MAX_TOOLS = 30;

function useFoundTools(query: string) {
  const [wanted] = useDebouncedValue(query, 120);
  const found = useQuery({
    queryKey: ['tools', 'search', wanted, MAX_TOOLS],
    queryFn: async () => (wanted.trim() === ''
      ? (await data(client.GET('/tools', { params: { query: { fields: 'summary', page_size: MAX_TOOLS } } }))).tools
      : (await data(client.GET('/tools/search', { params: { query: { q: wanted.slice(0, 200), page_size: MAX_TOOLS } } }))).tools),
    placeholderData: keepPreviousData,
    retry: false,
  });
  // What is listed belongs to an earlier query.
  return { ...found, isOld: wanted !== query || found.isPlaceholderData };
}

function Search({ onChoose }: { onChoose: (tool: string) => void }) {
  const t = useT();
  const id = useId();
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const { data: found = [], error, isPending, isOld } = useFoundTools(query);
  // Enter before the tools are there: the first that is found.
  const [isHurried, setHurried] = useState(false);
  const first = found[0];
  useEffect(() => { if (isHurried && !isOld && first) onChoose(toolRef(first)); }, [isHurried, isOld, first, onChoose]);
  const list = useRef<HTMLDivElement>(null);
  const selected = Math.min(at, Math.max(0, found.length - 1));
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
    // The selection decides which element that is.
    // oxlint-disable-next-line react/exhaustive-effect-dependencies
  }, [selected]);
  const onKey = (event: KeyboardEvent) => {
    const tool = found[selected];
    if (event.key === 'ArrowDown') setAt(Math.min(found.length - 1, selected + 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(0, selected - 1));
    else if (event.key === 'Enter' && isOld) setHurried(true);
    else if (event.key === 'Enter' && tool) onChoose(toolRef(tool));
    else return;
    event.preventDefault();
  };
  return (
    <Stack gap="sm">
      <TextInput value={query} onChange={(event) => { setQuery(event.currentTarget.value); setAt(0); setHurried(false); }} onKeyDown={onKey} leftSection={<IconSearch size={14} />} placeholder={t('chat.findTool')} aria-label={t('chat.findTool')} role="combobox" aria-expanded aria-controls={id} aria-activedescendant={`${id}-${selected}`} data-autofocus />
      {error ? <ErrorPanel error={error} /> : isPending ? <Loading rows={4} /> : (
        <div ref={list} className={classes.options} role="listbox" id={id} aria-label={t('nav.tools')}>
          {found.length === 0 && <Text c="dimmed" p="md">{t('palette.none')}</Text>}
          {found.map((tool, index) => (
            // The input handles the keys of its options.
            // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
            <div key={toolRef(tool)} id={`${id}-${index}`} role="option" tabIndex={-1} aria-selected={index === selected} className={classes.option} onClick={() => onChoose(toolRef(tool))} onMouseMove={() => setAt(index)}>
              <Text truncate><Mono><Highlight text={tool.name} query={query} /></Mono> <Text span c="dimmed" size="xs">{visibleText(tool.bundle)}</Text></Text>
              <Text size="xs" c="dimmed" truncate>{visibleText(tool.description)}</Text>
            </div>
          ))}
        </div>
      )}
    </Stack>
  );
}

function Form({ tool, chatId, onBack, onDone }: { tool: Tool; chatId: string; onBack: () => void; onDone: () => void }) {
  const t = useT();
  const queries = useQueryClient();
  const schema = useMemo(() => (tool.input_schema ?? { type: 'object' }) as Schema, [tool.input_schema]);
  const [args, setArgs] = useState<JsonObject>(() => defaults(schema) as JsonObject);
  const [mode, setMode] = useLocalStorage<'form' | 'json'>({ key: 'haft.argumentsMode', defaultValue: 'form' });
  const [invalid, setInvalid] = useState(false);
  const [progress, setProgress] = useState<RunProgress>();
  const [result, setResult] = useState<RunResult>();
  const [failure, setFailure] = useState<unknown>();
  const control = useRef<AbortController>(undefined);
  useEffect(() => () => control.current?.abort(), []);
  const isRunning = progress !== undefined;
  const start = async () => {
    if (isRunning || invalid) return;
    const abort = new AbortController();
    control.current = abort;
    setResult(undefined);
    setFailure(undefined);
    try {
      const outcome = await runTool({ ref: toolRef(tool), args, chatId, signal: abort.signal, onProgress: setProgress });
      setResult(outcome);
      const content = toolMessage(tool, args, outcome);
      if (content) {
        await chats.note(chatId, { content });
        onDone();
      }
    } catch (error) {
      setFailure(error);
    } finally {
      control.current = undefined;
      setProgress(undefined);
      for (const queryKey of [chatKeys.one(chatId), keys.calls, keys.approvals, workspaceKeys.all]) void queries.invalidateQueries({ queryKey });
    }
  };
  const rejected = result?.kind === 'rejected' ? result.error : undefined;
  return (
    <Stack onKeyDown={(event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); void start(); } }}>
      <Text c="dimmed" lineClamp={3}>{visibleText(tool.description)}</Text>
      <ArgumentsInput schema={schema} value={args} onChange={setArgs} mode={mode} onMode={setMode} onInvalid={setInvalid} violations={rejected ? readViolations(rejected.details) : []} onSubmit={() => void start()} />
      {rejected && <ErrorPanel error={rejected} />}
      {Boolean(failure) && <ErrorPanel error={failure} />}
      {!tool.ready && <Text c="var(--haft-bad)">{tool.error}</Text>}
      {isRunning && <Group gap="sm" role="status"><StatusBadge status={progress.status || 'running'} /></Group>}
      {isRunning && progress.lines.length > 0 && <OutputView lines={progress.lines} follow label={t('result.output')} maxHeight={180} />}
      <Group gap="sm">
        <Button variant="default" leftSection={<IconArrowLeft size={14} />} onClick={onBack}>{t('common.back')}</Button>
        <span className={classes.spacer} />
        {isRunning
          ? <Button color="red.8" leftSection={<IconPlayerStop size={14} />} onClick={() => control.current?.abort()}>{t('try.cancel')}</Button>
          : <Button leftSection={<IconPlayerPlay size={14} />} disabled={invalid || !tool.ready} onClick={() => void start()}>{t('chat.runTool')}</Button>}
      </Group>
    </Stack>
  );
}

export function ToolPalette({ chatId, onClose }: { chatId: string; onClose: () => void }) {
  const t = useT();
  const [chosen, setChosen] = useState<string>();
  const { data: tool, error, refetch } = useQuery({ ...toolQuery(chosen ?? ''), enabled: chosen !== undefined });
  return (
    <Modal opened onClose={onClose} size="lg" title={<Text fw={600} size="md">{chosen ? <Mono>{visibleText(tool?.name ?? chosen)}</Mono> : t('chat.runATool')}</Text>}>
      {chosen === undefined ? <Search onChoose={setChosen} />
        : error ? <Stack><ErrorPanel error={error} onRetry={() => void refetch()} /><Button variant="default" onClick={() => setChosen(undefined)}>{t('common.back')}</Button></Stack>
          : tool ? <Form key={toolRef(tool)} tool={tool} chatId={chatId} onBack={() => setChosen(undefined)} onDone={onClose} /> : <Loading />}
    </Modal>
  );
}
