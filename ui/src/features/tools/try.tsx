/** The live tester: arguments on the left, the result on the right. */
import { ActionIcon, Alert, Button, Group, Menu, Progress, Stack, Tabs, Text, TextInput, Tooltip } from '@mantine/core';
import { useHotkeys, useLocalStorage } from '@mantine/hooks';
import { IconDeviceFloppy, IconPlayerPlay, IconPlayerStop, IconX } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { runTool, type RunProgress, type RunResult } from '@/api/invoke';
import { keys } from '@/api/keys';
import { callQuery, examplesQuery, toolRef } from '@/api/queries';
import { useMay, useSession } from '@/api/session';
import type { JsonObject, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { CodeBlock, ErrorPanel } from '@/parts/basics';
import { copyAs, COPY_FORMATS, COPY_LABELS, type CopyFormat } from '@/parts/copy-as';
import { CallLink, PageLink } from '@/parts/links';
import classes from '@/parts/parts.module.css';
import { ResultView } from '@/parts/result-view';
import { defaults, type Schema } from '@/parts/schema';
import { ArgumentsInput } from '@/parts/schema-form';
import { readViolations } from '@/parts/schema-form/errors';
import { StatusBadge } from '@/parts/status';
import { Duration } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

interface Example {
  name: string;
  args: JsonObject;
}

/** Saved arguments: from the server where it stores them, and from this browser. */
function useExamples(tool: Tool) {
  const shared = useQuery(examplesQuery(toolRef(tool))).data?.examples ?? [];
  const [own, setOwn] = useLocalStorage<Example[]>({ key: `haft.examples.${tool.bundle}:${tool.name}`, defaultValue: [] });
  return { all: [...shared.map(({ name, args }) => ({ name, args, isOwn: false })), ...own.map((example) => ({ ...example, isOwn: true }))], own, setOwn };
}

function Examples({ tool, args, onChoose }: { tool: Tool; args: JsonObject; onChoose: (args: JsonObject) => void }) {
  const t = useT();
  const { all, own, setOwn } = useExamples(tool);
  const [name, setName] = useState('');
  const [open, setOpen] = useState(false);
  const save = () => {
    if (name.trim() === '') return;
    setOwn([...own.filter((example) => example.name !== name.trim()), { name: name.trim(), args }]);
    setName('');
    setOpen(false);
  };
  return (
    <Group gap={4}>
      {all.map((example) => (
        <Button.Group key={`${example.isOwn}${example.name}`}>
          <Button variant="default" size="compact-xs" onClick={() => onChoose(example.args)}>{example.name}</Button>
          {example.isOwn && <Button variant="default" size="compact-xs" px={4} aria-label={`${t('common.remove')} ${example.name}`} onClick={() => setOwn(own.filter((other) => other.name !== example.name))}><IconX size={11} /></Button>}
        </Button.Group>
      ))}
      <Menu opened={open} onChange={setOpen} position="bottom-start" closeOnItemClick={false} trapFocus={false}>
        <Menu.Target><Tooltip label={t('try.saveExample')}><ActionIcon aria-label={t('try.saveExample')}><IconDeviceFloppy size={15} /></ActionIcon></Tooltip></Menu.Target>
        <Menu.Dropdown p="sm">
          <form onSubmit={(event) => { event.preventDefault(); save(); }}>
            <Group gap="xs"><TextInput value={name} onChange={(event) => setName(event.currentTarget.value)} placeholder={t('try.exampleName')} aria-label={t('try.exampleName')} maxLength={40} /><Button type="submit">{t('common.save')}</Button></Group>
          </form>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}

function CopyAs({ tool, args }: { tool: Tool; args: JsonObject }) {
  const t = useT();
  const [format, setFormat] = useState<CopyFormat>('curl');
  const text = useMemo(() => copyAs(format, { origin: window.location.origin, ref: toolRef(tool), name: tool.name, args }), [format, tool, args]);
  return (
    <div>
      <Tabs value={format} onChange={(next) => setFormat((next ?? 'curl') as CopyFormat)} variant="pills">
        <Tabs.List mb="sm" aria-label={t('try.copyAs')}><Text c="dimmed" size="xs" mr="sm" style={{ alignSelf: 'center' }}>{t('try.copyAs')}</Text>{COPY_FORMATS.map((name) => <Tabs.Tab key={name} value={name} py={4}>{COPY_LABELS[name]}</Tabs.Tab>)}</Tabs.List>
      </Tabs>
      <CodeBlock text={text} maxHeight="12rem" />
    </div>
  );
}

function useRun(tool: Tool) {
  const queries = useQueryClient();
  const mayEdit = useMay('editor');
  const session = useSession();
  const [progress, setProgress] = useState<RunProgress>();
  const [result, setResult] = useState<RunResult>();
  const [failure, setFailure] = useState<unknown>();
  const [isRunning, setRunning] = useState(false);
  const control = useRef<AbortController>(undefined);
  useEffect(() => () => control.current?.abort(), []);
  const needsApproval = tool.policy === 'elevated' || tool.requires_confirmation;
  const run = useCallback(async (args: JsonObject) => {
    control.current?.abort();
    const abort = new AbortController();
    control.current = abort;
    setResult(undefined);
    setFailure(undefined);
    setRunning(true);
    try {
      const asTest = needsApproval && mayEdit && !session.elevated;
      setResult(await runTool({ ref: toolRef(tool), args, asTest, signal: abort.signal, onProgress: setProgress }));
    } catch (error) {
      setFailure(error);
    } finally {
      setRunning(false);
      control.current = undefined;
      void queries.invalidateQueries({ queryKey: keys.calls });
      void queries.invalidateQueries({ queryKey: keys.approvals });
      void queries.invalidateQueries({ queryKey: keys.tool(toolRef(tool)) });
    }
  }, [tool, needsApproval, mayEdit, session.elevated, queries]);
  const cancel = useCallback(() => control.current?.abort(), []);
  return { run, cancel, progress, result, failure, isRunning };
}

function Outcome({ state }: { state: ReturnType<typeof useRun> }) {
  const t = useT();
  const { result, progress, isRunning, failure } = state;
  const call = result?.kind === 'call' ? result.call : undefined;
  if (!result && !isRunning && !failure) return <Text c="dimmed" ta="center" py="xl">{t('try.hint')}</Text>;
  const done = progress?.progress;
  return (
    <Stack gap="sm" aria-live="polite">
      <Group gap="md" mih={24}>
        {isRunning && <StatusBadge status={progress?.status || 'running'} />}
        {call && <><StatusBadge status={call.status} /><Text c="dimmed"><Duration ms={call.duration_ms} /></Text><CallLink id={call.id}>{t('try.record')}</CallLink></>}
        {isRunning && done?.message && <Text c="dimmed" truncate>{done.message}</Text>}
      </Group>
      {isRunning && done?.total ? <Progress value={((done.progress ?? 0) / done.total) * 100} size="xs" aria-label={t('result.running')} /> : null}
      {Boolean(failure) && <ErrorPanel error={failure} />}
      {result?.kind === 'rejected' && <ErrorPanel error={result.error} />}
      {result?.kind === 'waiting' && (
        <Alert color="yellow" variant="light" title={t('status.awaiting_approval')}>
          <Text>{result.message}</Text><PageLink to="/approvals" search={{ open: result.approvalId }}>{t('try.openApproval')}</PageLink>
        </Alert>
      )}
      {(call || isRunning) && <ResultView call={call} lines={progress?.lines ?? []} isRunning={isRunning} />}
    </Stack>
  );
}

export function TryPanel({ tool }: { tool: Tool }) {
  const t = useT();
  const [url] = useUrlState();
  const schema = useMemo(() => (tool.input_schema ?? { type: 'object' }) as Schema, [tool.input_schema]);
  const [args, setArgs] = useState<JsonObject>(() => defaults(schema) as JsonObject);
  const [mode, setMode] = useLocalStorage<'form' | 'json'>({ key: 'haft.argumentsMode', defaultValue: 'form' });
  const [invalid, setInvalid] = useState(false);
  const state = useRun(tool);
  const { run, cancel, isRunning, result } = state;
  // `call=ID` starts with the arguments of an earlier call.
  const earlier = useQuery({ ...callQuery(url['call'] ?? ''), enabled: url['call'] !== undefined }).data;
  useEffect(() => {
    if (earlier?.args) setArgs(earlier.args as JsonObject);
  }, [earlier]);
  const start = useCallback(() => { if (!isRunning && !invalid) void run(args); }, [run, args, isRunning, invalid]);
  useHotkeys([['mod+Enter', start], ['Escape', () => { if (isRunning) cancel(); }]], [], true);
  const violations = useMemo(() => (result?.kind === 'rejected' ? readViolations(result.error.details) : result?.kind === 'call' && result.call.error?.code === 'invalid_arguments' ? readViolations((result.call.error.details ?? {}) as Record<string, unknown>) : []), [result]);
  return (
    <Stack>
      <div className={classes.steps}>
        <Stack gap="md">
          <Examples tool={tool} args={args} onChoose={setArgs} />
          <ArgumentsInput schema={schema} value={args} onChange={setArgs} mode={mode} onMode={setMode} onInvalid={setInvalid} violations={violations} onSubmit={start} />
          <Group gap="sm">
            {isRunning
              ? <Button color="red.8" leftSection={<IconPlayerStop size={14} />} onClick={cancel}>{t('try.cancel')}</Button>
              : <Button leftSection={<IconPlayerPlay size={14} />} onClick={start} disabled={invalid || !tool.ready}>{t('try.run')}</Button>}
            <Text size="xs" c="dimmed" visibleFrom="sm">{isRunning ? 'Esc' : 'Ctrl Enter'}</Text>
          </Group>
          {!tool.ready && <Text c="var(--haft-bad)">{tool.error}</Text>}
        </Stack>
        <Outcome state={state} />
      </div>
      <CopyAs tool={tool} args={args} />
    </Stack>
  );
}
