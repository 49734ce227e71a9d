import { RENDERERS } from '@/api/rendering';
import type { Signature } from '@/api/types';
import { useT } from '@/i18n';
import { Chip } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { StatusBadge } from '@/parts/status';

const STATUS: Record<Signature['status'], string> = { trusted: 'ok', unsigned: 'disabled', unknown_key: 'warning', invalid: 'error' };

export function SignatureBadge({ signature }: { signature: Signature }) {
  const t = useT();
  const note = signature.status === 'invalid' ? signature.reason : signature.status === 'trusted' ? signature.key_name : undefined;
  return <span title={'public_key' in signature ? signature.public_key : undefined}><StatusBadge status={STATUS[signature.status]} label={`${t(`toolsets.signature.${signature.status}`)}${note ? ` (${visibleText(note)})` : ''}`} /></span>;
}

/** How results are shown. */
export function RendererChip({ renderer }: { renderer: string | undefined }) {
  const t = useT();
  if (renderer === undefined) return null;
  const known = RENDERERS.find((name) => name === renderer);
  return <Chip>{known ? t(`render.kind.${known}`) : visibleText(renderer)}</Chip>;
}
