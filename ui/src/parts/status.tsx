import {
  IconAlertTriangle, IconBan, IconCircleCheck, IconCircleDashed, IconCircleDot, IconCircleMinus, IconCircleX, IconClock,
  IconHandStop, IconLoader, IconLock, IconMail, IconPlugConnectedX, IconShieldUp, type Icon,
} from '@tabler/icons-react';
import { useT, type MessageKey } from '@/i18n';
import { messages } from '@/i18n/messages';
import classes from './parts.module.css';

type Tone = 'good' | 'warn' | 'bad' | 'info' | 'quiet';

const STATUS: Record<string, [Tone, Icon]> = {
  draft: ['quiet', IconCircleDashed], published: ['good', IconCircleCheck], deprecated: ['warn', IconAlertTriangle],
  disabled: ['quiet', IconCircleMinus], enabled: ['good', IconCircleCheck], ready: ['good', IconCircleCheck],
  not_ready: ['bad', IconCircleX], warning: ['warn', IconAlertTriangle], pending: ['info', IconClock],
  running: ['info', IconLoader], success: ['good', IconCircleCheck], error: ['bad', IconCircleX],
  cancelled: ['quiet', IconCircleMinus], awaiting_approval: ['warn', IconHandStop], denied: ['bad', IconBan],
  expired: ['quiet', IconClock], interrupted: ['bad', IconPlugConnectedX], waiting: ['warn', IconHandStop],
  approved: ['good', IconCircleCheck], connected: ['good', IconCircleCheck], connecting: ['info', IconLoader], starting: ['info', IconLoader],
  disconnected: ['quiet', IconPlugConnectedX], needs_auth: ['warn', IconLock], ok: ['good', IconCircleCheck],
  allow: ['good', IconCircleCheck], approve: ['warn', IconHandStop], deny: ['bad', IconBan], elevated: ['warn', IconShieldUp],
  invited: ['info', IconMail], active: ['good', IconCircleCheck],
};

/** A state as colour, icon and word. */
export function StatusBadge({ status, label, iconOnly = false }: { status: string; label?: string; iconOnly?: boolean }) {
  const t = useT();
  const [tone, Shape] = STATUS[status] ?? ['quiet', IconCircleDot];
  const key = `status.${status}`;
  const word = label ?? (key in messages ? t(key as MessageKey) : status);
  const icon = <Shape size={15} stroke={2} className={classes.statusIcon} data-tone={tone} aria-hidden />;
  if (iconOnly) {
    // A native title: a list has hundreds of these, and a tooltip component for each makes scrolling slow.
    return <span className={classes.status} role="img" aria-label={word} title={word}>{icon}</span>;
  }
  return (
    <span className={classes.status}>
      {icon}
      <span>{word}</span>
    </span>
  );
}
