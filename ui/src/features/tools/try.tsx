/** The live tester: arguments on the left, the result on the right. */
import { Alert, Button, Group, Progress, Stack, Tabs, Text } from '@mantine/core';
import { useHotkeys, useLocalStorage } from '@mantine/hooks';
import { IconPlayerPlay, IconPlayerStop } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { runTool, type RunProgress, type RunResult } from '@/api/invoke';
import { keys } from '@/api/keys';
import { callQuery, toolRef } from '@/api/queries';
import { useMay, useSession } from '@/api/session';
import type { Json, JsonObject, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { CodeBlock, ErrorPanel } from '@/parts/basics';
import { ConnectAccount } from '@/parts/connect-account';
import { copyAs, COPY_FORMATS, COPY_LABELS, type CopyFormat } from '@/parts/copy-as';
import { visibleText } from '@/parts/format';
import { CallLink, PageLink } from '@/parts/links';
import classes from '@/parts/parts.module.css';
import { ResultView } from '@/parts/result-view';
import { defaults, type Schema } from '@/parts/schema';
import { ArgumentsInput, preloadForm } from '@/parts/schema-form';
import { readViolations } from '@/parts/schema-form/errors';
import { StatusBadge } from '@/parts/status';
import { Duration } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { Examples } from './examples';

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
        <Alert color="yellow" variant="light" title={t(result.provider ? 'accounts.waiting' : 'status.awaiting_approval')}>
          {result.provider ? (
            <Stack gap="sm" align="flex-start"><Text>{t('accounts.waitsHere', { provider: visibleText(result.provider) })}</Text><ConnectAccount provider={result.provider} /><CallLink id={result.callId}>{t('try.record')}</CallLink></Stack>
          ) : (
            <><Text>{result.message}</Text><PageLink to="/approvals" search={{ open: result.approvalId }}>{t('try.openApproval')}</PageLink></>
          )}
        </Alert>
      )}
      {(call || isRunning) && <ResultView call={call} lines={progress?.lines ?? []} isRunning={isRunning} />}
    </Stack>
  );
}

function TryPanel({ tool }: { tool: Tool }) {
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
  const [restored, setRestored] = useState<string>();
  if (earlier?.args && restored !== earlier.id) {
    setRestored(earlier.id);
    setArgs(earlier.args as JsonObject);
  }
  const start = useCallback(() => { if (!isRunning && !invalid) void run(args); }, [run, args, isRunning, invalid]);
  useHotkeys([['mod+Enter', start], ['Escape', () => { if (isRunning) cancel(); }]], [], true);
  const violations = useMemo(() => (result?.kind === 'rejected' ? readViolations(result.error.details) : result?.kind === 'call' && result.call.error?.code === 'invalid_arguments' ? readViolations((result.call.error.details ?? {}) as Record<string, unknown>) : []), [result]);
  return (
    <Stack>
      <div className={classes.steps}>
        <Stack gap="md">
          <Examples tool={tool} args={args} result={result?.kind === 'call' && result.call.status === 'success' ? (result.call.value as Json | undefined) : undefined} onChoose={setArgs} />
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

/** The tester with its form: the button below the form stays where it is. */
export async function loadTryPanel() {
  await preloadForm();
  return TryPanel;
}
