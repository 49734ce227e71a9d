/** What one sees of a tool at a glance: how its results are shown, and that it asks for approval. */
import { Tooltip } from '@mantine/core';
import { IconHandStop, IconLayoutBoard } from '@tabler/icons-react';
import { RENDERERS } from '@/api/rendering';
import { useT } from '@/i18n';
import { visibleText } from '../format';
import classes from './tool-picker.module.css';

export function RendererWord({ renderer }: { renderer: string }) {
  const t = useT();
  const known = RENDERERS.find((name) => name === renderer);
  return <>{known ? t(`render.kind.${known}`) : visibleText(renderer)}</>;
}

export function ToolMarks({ renderer, needsApproval }: { renderer: string | undefined; needsApproval: boolean }) {
  const t = useT();
  const shownAs = renderer !== undefined && <>{t('picker.shownAs')}: <RendererWord renderer={renderer} /></>;
  return (
    <>
      {shownAs && <Tooltip label={shownAs}><span role="img" aria-label={t('picker.hasRenderer')} className={classes.mark}><IconLayoutBoard size={15} color="var(--mantine-color-dimmed)" /></span></Tooltip>}
      {needsApproval && <Tooltip label={t('picker.confirmation')}><span role="img" aria-label={t('picker.confirmation')} className={classes.mark}><IconHandStop size={15} color="var(--haft-warn)" /></span></Tooltip>}
    </>
  );
}
