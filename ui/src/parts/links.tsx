import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { visibleText } from './format';
import classes from './parts.module.css';

/** `weather` of `user-created:weather@1.0.0`. */
export function shortName(ref: string): string {
  return ref.replace(/^[^:]*:/, '').replace(/@[^@]*$/, '');
}

export function ToolLink({ tool, children, tab }: { tool: string; children?: ReactNode; tab?: string }) {
  return (
    <Anchor component={Link} to="/tools/$ref" params={{ ref: tool } as never} search={(tab ? { tab } : {}) as never} className={classes.mono} c="inherit">
      {children ?? visibleText(shortName(tool))}
    </Anchor>
  );
}

export function CallLink({ id, children }: { id: string; children?: ReactNode }) {
  return <Anchor component={Link} to="/calls" search={{ open: id } as never} {...(children === undefined ? { className: classes.mono } : {})}>{children ?? id.slice(-8)}</Anchor>;
}

export function PageLink({ to, search, children }: { to: string; search?: Record<string, string>; children: ReactNode }) {
  return <Anchor component={Link} to={to} search={(search ?? {}) as never}>{children}</Anchor>;
}
