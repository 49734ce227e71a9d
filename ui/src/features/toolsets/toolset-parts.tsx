import type { Signature } from '@/api/unreleased';
import { RENDERERS } from '@/api/unreleased';
import { useT } from '@/i18n';
import { Chip } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { StatusBadge } from '@/parts/status';

const STATUS: Record<Signature['state'], string> = { valid: 'ok', unsigned: 'disabled', unknown_key: 'warning', invalid: 'error' };

export function SignatureBadge({ signature }: { signature: Signature }) {
  const t = useT();
  return <span title={signature.key ?? undefined}><StatusBadge status={STATUS[signature.state]} label={t(`toolsets.signature.${signature.state}`)} /></span>;
}

/** How results are shown. */
export function RendererChip({ renderer }: { renderer: { renderer: string; override?: boolean } | undefined }) {
  const t = useT();
  if (!renderer) return null;
  const known = RENDERERS.find((name) => name === renderer.renderer);
  return <Chip>{known ? t(`render.kind.${known}`) : visibleText(renderer.renderer)}{renderer.override && ' *'}</Chip>;
}
