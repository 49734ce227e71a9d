/** The small shared components: copy, empty state, error panel, permission note, facts, chips. */
import { ActionIcon, Button, Group, Stack, Text, Tooltip } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { IconAlertCircle, IconCheck, IconCopy, IconLock, type Icon } from '@tabler/icons-react';
import { Component, Fragment, type ReactNode } from 'react';
import { ApiError, missingAccount } from '@/api/error';
import { hasRole, useSession } from '@/api/session';
import type { Role } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { ConnectAccount } from './connect-account';
import { visibleText } from './format';
import classes from './parts.module.css';

export function CopyButton({ text, label, compact = true }: { text: string | (() => string); label?: string; compact?: boolean }) {
  const t = useT();
  const clipboard = useClipboard({ timeout: 1200 });
  const copy = () => clipboard.copy(typeof text === 'string' ? text : text());
  const word = clipboard.copied ? t('common.copied') : (label ?? t('common.copy'));
  const icon = clipboard.copied ? <IconCheck size={14} /> : <IconCopy size={14} />;
  if (!compact) {
    return <Button variant="default" leftSection={icon} onClick={copy}>{word}</Button>;
  }
  return (
    <Tooltip label={word}>
      <ActionIcon size="sm" onClick={copy} aria-label={word}>{icon}</ActionIcon>
    </Tooltip>
  );
}

interface EmptyProps {
  icon?: Icon;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

export function EmptyState({ icon: Shape, title, children, action }: EmptyProps) {
  return (
    <div className={classes.empty}>
      {Shape && <Shape size={32} stroke={1.4} className={classes.emptyIcon} aria-hidden />}
      <Text fw={600} c="var(--mantine-color-text)" size="md">{title}</Text>
      {children && <Text maw="34rem" c="dimmed" component="div">{children}</Text>}
      {action}
    </div>
  );
}

function errorTitle(error: ApiError): MessageKey {
  switch (error.code) {
    case 'unreachable': return 'error.unreachable';
    case 'unauthorized': return 'error.unauthorized';
    case 'forbidden': case 'read_only': return 'error.forbidden';
    case 'not_found': return 'error.not_found';
    case 'conflict': case 'idempotency_conflict': return 'error.conflict';
    case 'rate_limited': return 'error.rate_limited';
    default: return error.status >= 400 && error.status < 500 ? 'error.invalid' : 'error.other';
  }
}

/** What failed, why, how to fix it, the request id, and a way to try again. */
/** The problems that the details of an error list: at a field of a definition. */
function readProblems(details: Record<string, unknown>): { field: string; message: string }[] {
  return [details['problems'], details['warnings']].flatMap((list) => (Array.isArray(list) ? (list as { field?: unknown; message?: unknown }[]) : []))
    .map((problem) => ({ field: String(problem.field ?? ''), message: String(problem.message ?? '') }));
}

export function ErrorPanel({ error, onRetry, title }: { error: unknown; onRetry?: () => void; title?: string }) {
  const t = useT();
  const known = error instanceof ApiError ? error : undefined;
  const key = known ? errorTitle(known) : 'error.other';
  const provider = known && missingAccount(known);
  return (
    <div className={classes.error} role="alert">
      <div className={classes.errorTitle}><IconAlertCircle size={16} aria-hidden />{title ?? t(key)}</div>
      <Text mt={4} style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
        {visibleText((error instanceof Error ? error.message : String(error)).slice(0, 4000))}
      </Text>
      {known?.message === '' && readProblems(known.details).map((problem) => <Text key={`${problem.field}${problem.message}`} mt={4} style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(problem.field)}</Mono>: {visibleText(problem.message)}</Text>)}
      <Text c="dimmed" mt={4}>{t(`${key}.fix` as MessageKey)}</Text>
      <Group gap="sm" mt="sm">
        {provider && <ConnectAccount provider={provider} />}
        {onRetry && <Button variant="default" onClick={onRetry}>{t('common.retry')}</Button>}
        {known?.code && <Text c="dimmed" size="xs">{t('error.code', { code: known.code })}</Text>}
        {known?.requestId && <Text c="dimmed" size="xs">{t('error.request', { id: known.requestId })}</Text>}
      </Group>
    </div>
  );
}

/** Catches a failure of one part, so that the rest of the page stays usable. */
export class Boundary extends Component<{ children: ReactNode; title: string }, { error: Error | null }> {
  override state = { error: null as Error | null };
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <Stack p="xl"><ErrorPanel error={error} title={this.props.title} onRetry={() => this.setState({ error: null })} /></Stack>;
  }
}

/** Says why an action is not available. */
export function PermissionNote({ needs, platform = false }: { needs: Role; platform?: boolean }) {
  const t = useT();
  const session = useSession();
  if (hasRole(session.role, needs) && (!platform || session.platform)) return null;
  const text = hasRole(session.role, needs)
    ? t('permission.platform')
    : t('permission.needs', { role: t(`role.${needs}`), current: t(`role.${session.role}`) });
  return (
    <Group gap={6} c="dimmed" wrap="nowrap"><IconLock size={14} aria-hidden /><Text c="dimmed">{text}</Text></Group>
  );
}

export function Chip({ children, title }: { children: ReactNode; title?: string }) {
  return <span className={classes.chip} title={title}>{children}</span>;
}

export function Mono({ children }: { children: ReactNode }) {
  return <span className={classes.mono}>{children}</span>;
}

/** Labelled values, one per line. Rows without a value are left out. */
export function Facts({ rows }: { rows: [label: string, value: ReactNode][] }) {
  return (
    <dl className={classes.facts}>
      {rows.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false).map(([label, value]) => (
        <Fragment key={label}><dt>{label}</dt><dd>{value}</dd></Fragment>
      ))}
    </dl>
  );
}

export function SectionTitle({ children, right }: { children: ReactNode; right?: ReactNode }) {
  return <h3 className={classes.sectionTitle}><span>{children}</span><span className={classes.spacer} />{right}</h3>;
}

/** Marks each occurrence of the words of a query. */
export function Highlight({ text, query }: { text: string; query: string }) {
  const shown = visibleText(text);
  const words = query.trim().split(/\s+/).filter(Boolean).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  if (words.length === 0) return <>{shown}</>;
  const pieces = shown.split(new RegExp(`(${words.join('|')})`, 'gi'));
  return <>{pieces.map((piece, index) => (index % 2 === 1 ? <mark key={index} className={classes.mark}>{piece}</mark> : piece))}</>;
}

/** A short text in a box with a copy button. */
export function CodeBlock({ text, wrap = false, maxHeight }: { text: string; wrap?: boolean; maxHeight?: string }) {
  return (
    <div className={classes.blockWrap}>
      {/* The box scrolls, so it must be reachable by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={classes.block} data-wrap={wrap} tabIndex={0} style={{ maxHeight }}>{text}</pre>
      <span className={classes.blockCopy}><CopyButton text={text} /></span>
    </div>
  );
}
